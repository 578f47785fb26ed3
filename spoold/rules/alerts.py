"""Alerts: what people are told of, once for each time that it begins. Figures of the spool become readings by the
settings in [alerts], and readings that are out of bounds become alerts, which stand until they are well within.

Law: a rule without a setting gives no reading, so its alerts fall. Of what is not known yet, the reading says so.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.amount import amount, figure, length
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import base36, own_name, slug
from spoold.protocol.settings import AlertSettings
from spoold.protocol.snapshot import Alert
from spoold.protocol.timestamps import moment
from spoold.rules.share.free_space import Limits, Room, room, share_used, shortage

# How many of the attempts that ended last have failed.
# Law: an attempt that was handed back or cancelled is no failure and no success. A leader that has not watched for
# long enough knows nothing: the attempts of before are none of its own.


# Of so many attempts at most, within so long (s); fewer than LEAST prove nothing.
LAST, OVER_S, LEAST = 100, 3600.0, 20


@dataclass(frozen=True, slots=True)
class Failures:
    """So many attempts ended, and so many of them failed. known: whether that is all there was to see."""

    ended: int
    failed: int
    known: bool

    @property
    def rate(self) -> float:
        """The part that failed; 0 of too few attempts."""
        return self.failed / self.ended if self.ended >= LEAST else 0.0


class Outcomes:
    """The attempts that ended while one leader watched. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, bool]] = deque(maxlen=LAST)
        self._charges: dict[str, int] = {}
        self._since: float | None = None

    def watch(self, now: float) -> None:
        """Count from now on; what came before was not seen to end."""
        if self._since is None:
            self._since = now

    def charged(self, task_key: str, charges: int) -> None:
        """A task that has not ended was seen, with so many charges on its retry budget."""
        if charges:
            self._charges[task_key] = charges

    def returned(self, now: float, task_key: str, charges: int) -> None:
        """An attempt ended, and its task came back: as a failure if that charged something."""
        failed = charges > self._charges.get(task_key, 0)
        self.charged(task_key, charges)
        if failed:
            self._add(now, failed=True)

    def ended(self, now: float, task_key: str, *, failed: bool | None) -> None:
        """A task ended. failed: None for one that did neither succeed nor fail, such as one that was cancelled."""
        self._charges.pop(task_key, None)
        if failed is not None:
            self._add(now, failed=failed)

    def _add(self, now: float, *, failed: bool) -> None:
        if self._since is not None:
            self._last.append((now, failed))

    def now(self, now: float) -> Failures:
        """The attempts that ended last."""
        while self._last and now - self._last[0][0] > OVER_S:
            self._last.popleft()
        ended, failed = len(self._last), sum(failed for _, failed in self._last)
        watched = self._since is not None and now - self._since >= OVER_S
        return Failures(ended, failed, known=watched or ended >= LEAST)


# The free room counts as so much of itself when an alert is to fall.
ROOM_TREMBLES = 0.95
# Signs of a host's name that are shown.
NAME_MAX = 100


@dataclass(frozen=True, slots=True)
class Space:
    """The share: bytes in all, bytes and inodes that are free; None: inodes that are not counted. limits: [disk]."""

    total: int
    free: int
    inodes: int | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class Figures:
    """What one look shows. workers: those that live, and None for one whose beat was not read yet; dead: nodes, each
    with its last beat as far as that was read; silent: nodes that may be dead; dead_after_s: the silence after which
    a node is dead; succeeded: nodes that are or were dead, and have a successor that lives.

    queue: tasks that wait or are ready; ready and still_s: for how long nothing has started though some are ready and
    a worker for them has nothing to do (None: unknown); gates: as in the snapshot; counting: failures in a row are
    not all counted yet; followers: workers of other hosts and standbys.
    """

    failures: Failures
    workers: Mapping[str, Heartbeat | None] = field(default_factory=dict)
    dead: Mapping[str, Heartbeat | None] = field(default_factory=dict)
    silent: Collection[str] = ()
    succeeded: Collection[str] = ()
    dead_after_s: float = 0
    queue: int = 0
    ready: int = 0
    still_s: float | None = 0
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counting: bool = False
    followers: int = 0
    space: Space | None = None


def readings(seen: Figures, by: AlertSettings) -> Iterator[Reading]:
    """Every reading that the settings ask for."""
    yield from _failure_rate(seen.failures, by)
    yield from _memory(seen.workers, by)
    if by.queue is not None:
        text = f"{amount(seen.queue, 'task')} wait or are ready; above {figure(by.queue)} is an alert"
        yield Reading("queue", "", above(seen.queue, by.queue), seen.queue, by.queue, text, by.after_s)
    yield from _stuck(seen, by)
    yield from _dead(seen, by)
    yield from _limits(seen.gates.get("quota", {}), by)
    yield from _breakers(seen, by)
    yield from _budgets(seen.gates.get("budget", {}), by)
    if by.followers:
        there = amount(seen.followers, "worker on another host or standby", "workers on other hosts and standbys")
        few, text = seen.followers < by.followers, f"the leader has {there}; fewer than {by.followers} is an alert"
        yield Reading("followers", "", few, seen.followers, by.followers, text, by.after_s)
    if by.disk and seen.space is not None:
        yield from _disk(seen.space)


def unsure(seen: Figures) -> Collection[str]:
    """The names of which some readings may be missing, because their figures are not known yet."""
    budgets = seen.gates.get("budget", {}).values()
    found = {"budget"} if any(said["closed"] for said in budgets) else set()
    return found | {"breaker_open"} if seen.counting else found


def _failure_rate(failures: Failures, by: AlertSettings) -> Iterator[Reading]:
    if by.failure_rate is None:
        return
    over = above(failures.rate, by.failure_rate) if failures.known else None
    last = amount(failures.ended, "attempt")
    text = f"{figure(failures.failed)} of the last {last} failed; more than {_percent(by.failure_rate)} is an alert"
    yield Reading("failure_rate", "", over, round(failures.rate, 4), by.failure_rate, text)


def _memory(workers: Mapping[str, Heartbeat | None], by: AlertSettings) -> Iterator[Reading]:
    if by.memory is None:
        return
    for node, beat in workers.items():
        if beat is None:
            yield Reading("memory", node, None)
        elif beat.capabilities is not None and beat.capabilities.mem_mb and beat.mem_available_mb is not None:
            used = max(0.0, 1 - beat.mem_available_mb / beat.capabilities.mem_mb)
            left = f"{figure(beat.mem_available_mb)} of {figure(beat.capabilities.mem_mb)} MiB are available"
            text = f"{_percent(used)} of the memory of {node} is in use: {left}"
            yield Reading("memory", node, above(used, by.memory), round(used, 4), by.memory, text, by.after_s)


def _stuck(seen: Figures, by: AlertSettings) -> Iterator[Reading]:
    if not by.stuck_s:
        return
    if seen.still_s is None:
        yield Reading("stuck", "", None)
        return
    ready = "1 task is ready and a worker for it" if seen.ready == 1 else None
    ready = ready or f"{amount(seen.ready, 'task')} are ready and a worker for one"
    text = f"nothing has started for {length(seen.still_s)}, though {ready} has nothing to do"
    yield Reading("stuck", "", seen.still_s >= by.stuck_s, round(seen.still_s, 1), by.stuck_s, text)


def _dead(seen: Figures, by: AlertSettings) -> Iterator[Reading]:
    if not by.dead_s:
        return
    known = {*seen.dead, *seen.succeeded}
    yield from (Reading("node_dead", node, None) for node in seen.silent if node not in known)
    yield from (Reading("node_dead", node, False) for node in seen.succeeded)
    for node, beat in seen.dead.items():
        if node in seen.succeeded:
            continue
        host = f" on {_one_line(beat.host.hostname)}" if beat is not None and beat.host.hostname else ""
        text = f"{node}{host} is dead; {_left_by(beat)}"
        since, after_s = beat.at if beat is not None else "", seen.dead_after_s
        yield Reading("node_dead", node, True, after_s, after_s, text, since=since)


def _left_by(beat: Heartbeat | None) -> str:
    """What a dead node leaves behind, by its last beat alone, so that every leader says the same."""
    if beat is not None and beat.role == "master":
        return "it ran no tasks"
    if beat is not None and not beat.running:
        return "it ran no task at its last beat; one that it began since is tried again elsewhere"
    return "what it ran is tried again elsewhere"


def succeeded(gone: Mapping[str, str], living: Iterable[Heartbeat]) -> set[str]:
    """The nodes that have a successor: one of the same own name that has begun since their last beats. gone: nodes
    that are or were dead, each with when its last beat was written (RFC 3339); '' for unknown: it has none.
    """
    begun: dict[str, float] = {}
    for beat in living:
        name, started = own_name(beat.node), moment(beat.started)
        if name and started is not None:
            begun[name] = max(started, begun.get(name, started))
    return {
        node
        for node, at in gone.items()
        if (last := moment(at)) is not None and begun.get(own_name(node), last) > last
    }


def _limits(closed: Mapping[str, Any], by: AlertSettings) -> Iterator[Reading]:
    if not by.limits:
        return
    for name, said in closed.items():
        if "by" not in said:
            yield Reading("limit_closed", name, None)  # one task tries whether the quota is there again
            continue
        until = f"until {said['until']}" if said["until"] else f"until `spool limits open {name}`"
        until += ", and then one task tries it" if said["until"] and said["by"] == "quota" else ""
        why = "its quota is used up" if said["by"] == "quota" else "a person closed it"
        yield Reading("limit_closed", name, True, 1, 1, f"the limit {name} is closed {until}: {why}")


def _breakers(seen: Figures, by: AlertSettings) -> Iterator[Reading]:
    if not by.breakers:
        return
    for kind, said in seen.gates.get("breaker", {}).items():
        failures, until = said["failures"], said["until"]
        # Whether the type goes well again is for the one task that tries to say.
        over = None if seen.counting or "trying" in said else until is not None
        # It stands while tasks try, after that moment and perhaps another one.
        first = f"nothing of type {kind} starts until {until}, and then one task at a time, until one ends well"
        text = f"{first}: {amount(failures, 'failure')} in a row, {said['last']}"
        yield Reading("breaker_open", kind, over, failures, failures, text)


def _budgets(budgets: Mapping[str, Any], by: AlertSettings) -> Iterator[Reading]:
    if by.budget is None:
        return
    for name, said in budgets.items():
        for period in said["periods"]:
            parts = {
                unit: period["spent"].get(unit, 0) / limit if limit else 1.0 for unit, limit in said["limits"].items()
            }
            if not parts:
                continue
            unit = max(parts, key=lambda each: parts[each])
            subject = name if period["period"] == said["per"] else f"{name} {period['period']}"
            spent, limit = figure(period["spent"].get(unit, 0), 2), figure(said["limits"][unit], 2)
            text = f"{_percent(parts[unit])} of budget {subject} is spent: {spent} of {limit} {unit}"
            over = None if said["closed"] else reached(parts[unit], by.budget)
            yield Reading("budget", subject, over, round(parts[unit], 4), by.budget, text)


def _disk(space: Space) -> Iterator[Reading]:
    limits, used = space.limits, share_used(space.total, space.free)
    now = room(space.total, space.free, space.inodes, limits)
    inodes = None if space.inodes is None else int(space.inodes * ROOM_TREMBLES)
    low = room(space.total, int(space.free * ROOM_TREMBLES), inodes, limits)
    text = shortage(space.total, space.free, space.inodes, limits)
    rest = "no drop is admitted and no task starts"
    for name, threshold, out, near in (
        ("disk", limits.warn, now is not Room.ENOUGH, low is not Room.ENOUGH),
        ("disk_full", limits.stop, now.full, low.full),
    ):
        over = True if out else None if near else False
        told = f"{text}; {rest} until some is free" if now.full else text
        yield Reading(name, "", over, round(used, 4), threshold, told)


def _one_line(name: str) -> str:
    """A name that a node gave itself, as a part of a sentence that a program may take for several lines."""
    return "".join(sign if sign.isprintable() else " " for sign in name)[:NAME_MAX]


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


# One look at one thing that people may be told of, and when it is out of bounds.
# Law: between its threshold and the nine tenths of it at which it falls, a figure changes nothing: one that
# trembles around its threshold is one alert.


# An alert falls once its figure is below this part of its threshold.
FALLS_AT = 0.9


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure with its threshold, in the unit of the setting. subject: what it is about, '' for the whole spool.

    over: whether it is out of bounds; None: neither clearly out nor clearly within, or unknown. text: a sentence.
    after_s: how long (s) it must be out of bounds before that is an alert. since: when that began (RFC 3339), where
    every leader finds the same moment; '': when it is first seen.
    """

    name: str
    subject: str
    over: bool | None
    value: float = 0
    threshold: float = 0
    text: str = ""
    after_s: float = 0
    since: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two readings readings of the same thing."""
        return self.name, self.subject


def above(value: float, threshold: float) -> bool | None:
    """Whether the value is above its threshold; None in between."""
    return True if value > threshold else False if value <= threshold * FALLS_AT else None


def reached(value: float, threshold: float) -> bool | None:
    """Whether the value has reached its threshold; None in between."""
    return True if value >= threshold else above(value, threshold)


# The alerts that stand: which rise now, and which fall.
# Law: one per rise. What stood on a predecessor's board stands on this one, and does not rise again. An alert keeps
# the figures of its rise, and the id of its task is made of what it is about and when it rose: so two leaders that
# tell of one rise make the same task.


# So many alerts of one name stand at once: a rack that dies is told of, and not a hundred times more.
MOST = 100
Key = tuple[str, str]


@dataclass(slots=True)
class Changes:
    """What one look has changed."""

    raised: list[Alert] = field(default_factory=list)
    cleared: list[Alert] = field(default_factory=list)


def task_id(alert: Alert) -> str:
    """The id of the task that tells of this rise: the same for every leader that saw it rise then."""
    what = f"{alert.name}/{alert.subject}/{alert.since}"
    digest = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=5).digest())
    return f"alert-{slug(f'{alert.name}-{alert.subject}', 60)}-{base36(digest, 8)}"


def notice(alert: Alert, kind: str) -> dict[str, Any]:
    """The task that tells of an alert, as a drop: two leaders that tell of one rise write the same."""
    told = alert.model_dump(exclude={"task"})
    return {"id": task_id(alert), "type": kind, "name": f"alert: {alert.text}"[:200], "input": told}


class Board:
    """The alerts that stand, as one leader knows them. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._standing: dict[Key, Alert] = {}
        self._seen: dict[Key, float] = {}
        self._over: dict[Key, float] = {}

    @property
    def standing(self) -> tuple[Alert, ...]:
        """The alerts, by name and subject."""
        return tuple(alert for _, alert in sorted(self._standing.items()))

    def begin(self, alerts: Iterable[Alert]) -> None:
        """Go on with the alerts of a predecessor."""
        self._standing = {(alert.name, alert.subject): alert for alert in alerts}

    def look(
        self, readings: Iterable[Reading], now: float, stamp: str, *, unsure: Collection[str] = (), dead_s: float = 0
    ) -> Changes:
        """Take in one look at everything. stamp: now, as people read it.

        unsure: names of which not all readings are there. dead_s: how long the alert of a dead node stands.
        """
        found = {reading.key: reading for reading in readings}
        changes = Changes()
        for key, alert in sorted(self._standing.items()):
            reading, seen = found.get(key), self._seen.setdefault(key, now)
            lasts = alert.name in unsure or (alert.name == "node_dead" and now - seen < dead_s)
            if reading.over is False if reading is not None else not lasts:
                del self._standing[key], self._seen[key]
                changes.cleared.append(alert)
        self._rise(found, now, stamp, changes)
        return changes

    def _rise(self, found: dict[Key, Reading], now: float, stamp: str, changes: Changes) -> None:
        many = Counter(name for name, _ in self._standing)
        self._over = {
            key: self._over.get(key, now)
            for key, reading in found.items()
            if reading.over or (reading.over is None and key in self._over)
        }
        for key, reading in sorted(found.items()):
            lasted_s = now - self._over.get(key, now)
            if key in self._standing or not reading.over or lasted_s < reading.after_s or many[key[0]] >= MOST:
                continue
            alert = Alert(
                name=reading.name,
                subject=reading.subject,
                since=reading.since or stamp,
                value=reading.value,
                threshold=reading.threshold,
                text=reading.text,
            )
            many[key[0]] += 1
            self._standing[key], self._seen[key] = alert, now
            changes.raised.append(alert)

    def told(self, alert: Alert, by: str) -> None:
        """Note that the task of this id tells of the alert."""
        key = (alert.name, alert.subject)
        if (standing := self._standing.get(key)) is not None and standing.since == alert.since:
            self._standing[key] = standing.model_copy(update={"task": by})
