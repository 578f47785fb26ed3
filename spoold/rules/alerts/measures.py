"""Figures of the spool → readings, by the settings in [alerts].

Law: a rule without a setting gives no reading, so its alerts fall. Of what is not known yet, the reading says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.alert_settings import AlertSettings
from spoold.protocol.amount import amount, figure, length
from spoold.protocol.heartbeat import Heartbeat
from spoold.rules.alerts.reading import Reading, above, reached
from spoold.rules.alerts.recent import Failures
from spoold.rules.share.disk import Limits, Room, room, share_used, shortage

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
    a node is dead.

    queue: tasks that wait or are ready; ready and still_s: for how long nothing has started though some are ready and
    a worker for them has nothing to do (None: unknown); gates: as in the snapshot; counting: failures in a row are
    not all counted yet; followers: workers of other hosts and standbys.
    """

    failures: Failures
    workers: Mapping[str, Heartbeat | None] = field(default_factory=dict)
    dead: Mapping[str, Heartbeat | None] = field(default_factory=dict)
    silent: Collection[str] = ()
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
    yield from (Reading("node_dead", node, None) for node in seen.silent if node not in seen.dead)
    for node, beat in seen.dead.items():
        host = f" on {_one_line(beat.host.hostname)}" if beat is not None and beat.host.hostname else ""
        led = beat is not None and beat.role == "master"
        text = f"{node}{host} is dead; {'it ran no tasks' if led else 'what it ran is tried again elsewhere'}"
        since, after_s = beat.at if beat is not None else "", seen.dead_after_s
        yield Reading("node_dead", node, True, after_s, after_s, text, since=since)


def _limits(closed: Mapping[str, Any], by: AlertSettings) -> Iterator[Reading]:
    if not by.limits:
        return
    for name, said in closed.items():
        if "by" not in said:
            yield Reading("limit_closed", name, None)  # one task tries whether the quota is there again
            continue
        until = f"until {said['until']}" if said["until"] else f"until `spool limits open {name}`"
        why = "its quota is used up" if said["by"] == "quota" else "a person closed it"
        yield Reading("limit_closed", name, True, 1, 1, f"the limit {name} is closed {until}: {why}")


def _breakers(seen: Figures, by: AlertSettings) -> Iterator[Reading]:
    if not by.breakers:
        return
    for kind, said in seen.gates.get("breaker", {}).items():
        failures, until = said["failures"], said["until"]
        # Whether the type goes well again is for the one task that tries to say.
        over = None if seen.counting or "trying" in said else until is not None
        text = f"nothing of type {kind} starts until {until}: {amount(failures, 'failure')} in a row, {said['last']}"
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
