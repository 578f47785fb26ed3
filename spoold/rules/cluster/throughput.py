"""How fast tasks end, when the rest will have ended, and recent failures: never more than was seen.

Law: a rate that nothing has confirmed for two minutes is no rate. An end is foretold only if enough tasks have
ended, nothing is held, some task is ready or runs, and some worker that is awake can run each task that is left. All
times are of one monotonic clock, in seconds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from spoold.protocol.amount import amount, plus
from spoold.protocol.snapshot import Rates, Recent, Snapshot
from spoold.protocol.timestamps import moment
from spoold.rules.cluster.recent_minutes import MINUTE_S

# Rates cover so long, at least a minute, so that one quick task does not promise a rate; of SAMPLES or more some
# seconds. Stale after so long.
WINDOW_S, AT_LEAST_S, SOON_S, STALE_S = 300.0, 60.0, 5.0, 120.0
# An end is foretold after so many ended tasks, and not before there is about one for each slot.
SAMPLES = 5
RECENT_S = 600.0
# Each entry covers so long, and so many causes are reported.
PIECE_S, CAUSES = 10.0, 8


@dataclass(frozen=True, slots=True)
class Left:
    """The tasks that have not ended: how many in all; unservable: how many of them no awake worker can run; held: why
    none of them may start ('' if they may); slots of the workers that are awake."""

    tasks: int = 0
    unservable: int = 0
    held: str = ""
    slots: int = 0


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    completed: int
    failed: int
    working: bool


class Tempo:
    """The counts as one leader took them now and then, after those of the leaders before."""

    def __init__(self) -> None:
        self._looks: deque[_Look] = deque()
        self._completed_at = self._failed_at = float("-inf")
        self._busy_since = float("-inf")

    def begin(self, now: float, wall: float, before: Snapshot) -> None:
        """Go on from a predecessor's snapshot. wall: now, in seconds since 1970 by the pool's clock."""
        ended_at = moment(before.history.until)
        if ended_at is None:
            return
        until = now - max(0.0, wall - ended_at)
        completed, failed = before.tasks.completed, before.tasks.failed
        looks, follows = [_Look(until, completed, failed, working=True)], ended_at
        self._busy_since = until
        for minute in reversed(before.history.minutes):
            began = moment(minute.at)
            if began is None or ended_at - began > WINDOW_S:
                break
            at, end = until - (ended_at - began), min(until, until - (ended_at - began) + MINUTE_S)
            self._completed_at = max(self._completed_at, end if minute.completed else self._completed_at)
            self._failed_at = max(self._failed_at, end if minute.failed else self._failed_at)
            if follows - began <= MINUTE_S:  # no whole minute without an end lies between
                self._busy_since, follows = at, began
            completed, failed = completed - minute.completed, failed - minute.failed
            looks.append(_Look(at, completed, failed, working=True))
        since = moment(before.history.since)
        known_s = WINDOW_S if since is None else min(WINDOW_S, max(0.0, ended_at - since))
        if since is not None and until - known_s < looks[-1].at:
            looks.append(_Look(until - known_s, completed, failed, working=True))
        self._looks.extend(reversed(looks))

    def rates(self, now: float, completed: int, failed: int, left: Left, *, working: bool) -> Rates:
        """The rates at one look. working: whether anything is ready or runs; completed and failed: of all time."""
        if self._looks:
            last = self._looks[-1]
            if completed > last.completed:
                self._completed_at = now
            if failed > last.failed:
                self._failed_at = now
            if working and not last.working:
                self._busy_since = last.at
        self._looks.append(_Look(now, completed, failed, working))
        while now - self._looks[0].at > WINDOW_S:
            self._looks.popleft()
        first = self._looks[0]
        done = max(0, completed - first.completed) if now - self._completed_at < STALE_S else 0
        broken = max(0, failed - first.failed) if now - self._failed_at < STALE_S else 0
        why = _unknown(left, done, working)
        # Idle time before this work began says nothing about its pace.
        spent_s = max(now - max(first.at, self._busy_since), 1.0)
        return Rates(
            completed_per_min=_per_min(done, now - first.at),
            failed_per_min=_per_min(broken, now - first.at),
            eta_s=round(left.tasks / done * spent_s, 1) if left.tasks and not why else None,
            eta_unknown=why if left.tasks else "",
        )


def _per_min(count: int, over_s: float) -> float:
    least_s = SOON_S if count >= SAMPLES else AT_LEAST_S
    return round(60 * count / max(over_s, least_s), 2)


def _unknown(left: Left, done: int, working: bool) -> str:
    """Why it is unknown when the remaining tasks will have ended; '' if it is known."""
    if left.held:
        return left.held
    if left.unservable:
        return f"no worker can run {left.unservable} of {amount(left.tasks, 'task')}"
    if not working:
        return "no task is ready or runs"
    if done < max(SAMPLES, left.slots):
        return "too few tasks have completed lately" if done else "no task has completed lately"
    return ""


class Tally:
    """The failures of the last ten minutes, by cause."""

    def __init__(self) -> None:
        self._attempts: deque[tuple[float, Counter[str]]] = deque()
        self._drops: deque[tuple[float, Counter[str]]] = deque()
        self._told: dict[str, Mapping[str, int]] = {}

    def begin(self, now: float, wall: float, before: Snapshot) -> None:
        """Go on from a predecessor's snapshot. wall: now, in seconds since 1970 by the pool's clock."""
        self._told = {node.worker: node.endings for node in before.nodes}
        for minute in before.history.minutes:
            if (began := moment(minute.at)) is not None:
                at = now - max(0.0, wall - began - MINUTE_S)
                _add(self._attempts, at, minute.attempts)
                _add(self._drops, at, minute.drops)

    def hear(self, now: float, node: str, beat: int, endings: Mapping[str, int]) -> dict[str, int]:
        """Take in a node's report of how many attempts have failed on it since it started, by code; returns what is
        new of it.

        Failures that it counted before a leader first saw it have no known time, unless it has only just begun.
        """
        before = self._told.get(node, endings if beat else {})
        more = {code: count - before.get(code, 0) for code, count in endings.items()}
        _add(self._attempts, now, more)
        self._told[node] = dict(endings)
        return {code: count for code, count in more.items() if count > 0}

    def forget(self, node: str) -> None:
        """Forget a node that is gone; the failures that it reported still count."""
        self._told.pop(node, None)

    def ended(self, now: float, codes: Mapping[str, int]) -> None:
        """Take in attempts or tasks that the leader itself ended, by code."""
        _add(self._attempts, now, codes)

    def rejected(self, now: float, problems: Mapping[str, int]) -> None:
        """Take in rejected drops, by problem."""
        _add(self._drops, now, problems)

    def recent(self, now: float) -> Recent:
        """The failures of the last ten minutes, the most frequent first."""
        return Recent(over_s=RECENT_S, failed_attempts=_sum(self._attempts, now), rejections=_sum(self._drops, now))


def _add(pieces: deque[tuple[float, Counter[str]]], now: float, counts: Mapping[str, int]) -> None:
    new = Counter({name: count for name, count in counts.items() if count > 0})
    if not new:
        return
    if not pieces or now - pieces[-1][0] >= PIECE_S:
        pieces.append((now, Counter()))
    _count(pieces[-1][1], new)


def _sum(pieces: deque[tuple[float, Counter[str]]], now: float) -> dict[str, int]:
    while pieces and now - pieces[0][0] > RECENT_S:
        pieces.popleft()
    total: Counter[str] = Counter()
    for _, counts in pieces:
        _count(total, counts)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0]))[:CAUSES])


def _count(total: Counter[str], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        total[name] = plus(total[name], count)
