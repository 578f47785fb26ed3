"""The layout of a timeline: a lane for each slot of a worker, and time as a position.

What is busy has its true length, and a long idle gap is folded to a mark of fixed width.

Law: nothing overlaps in a lane. Moments are whole microseconds, and a bar is at least one long, so that every format
draws the same lanes. An attempt without a begin (it never started) has no bar, and is counted. A later moment is
never to the left of an earlier one. A fold covers only time in which nothing ran.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from spoold.pictures.picture_data import Attempt, Scene, Task

# A gap is folded when it is longer than this part of all busy time, and the marks take this part at most.
FOLDED_FROM, MARKS_MOST = 0.1, 0.3
MARK = 34.0
TICK_GAP, LABEL = 92.0, 56.0
_STEPS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
STEPS = tuple(round(step * 1e6) for step in (*_STEPS_S, 3600, 7200, 10800, 21600, 43200, 86400))
_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment with its label, and where it is."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Fold:
    """A gap that is folded: where its mark is, and how long (s) nothing ran."""

    left: float
    width: float
    idle_s: float


class Axis:
    """All moments of some spans (in microseconds), over a width."""

    def __init__(self, spans: Iterable[Span], width: float) -> None:
        merged = _merged(spans)
        self.busy = sum(end - begin for begin, end in merged)
        self._pieces = _joined(merged, self.busy * FOLDED_FROM)
        gaps = len(self._pieces) - 1
        self._width = width
        self._mark = min(MARK, width * MARKS_MOST / gaps) if gaps else 0.0
        shown = sum(end - begin for begin, end in self._pieces)
        self.scale = (width - gaps * self._mark) / shown if shown else 0.0
        self._lefts, at = [], 0.0
        for begin, end in self._pieces:
            self._lefts.append(at)
            at += (end - begin) * self.scale + self._mark
        self._begins = [begin for begin, _ in self._pieces]

    @property
    def whole(self) -> Span:
        """The first and the last moment; equal where there is none."""
        return (self._pieces[0][0], self._pieces[-1][1]) if self._pieces else (0, 0)

    def x(self, moment: int) -> float:
        """Return where a moment is."""
        if not self._pieces:
            return 0.0
        piece = max(0, bisect_right(self._begins, moment) - 1)
        begin, end = self._pieces[piece]
        return self._lefts[piece] + (min(max(moment, begin), end) - begin) * self.scale

    def folds(self) -> list[Fold]:
        """Return the gaps that are folded."""
        found = []
        for (_, before), (begin, _), left in zip(self._pieces, self._pieces[1:], self._lefts[1:], strict=False):
            found.append(Fold(left - self._mark, self._mark, (begin - before) / 1e6))
        return found

    def ticks(self) -> list[Tick]:
        """Return round moments, as far from each other as their labels need."""
        if not self._pieces:
            return []
        step = next((step for step in STEPS if step * self.scale >= TICK_GAP), 0)
        while not step or step * self.scale < TICK_GAP:
            step = max(step, STEPS[-1]) * 2
        found: list[Tick] = []
        day = -1
        for begin, end in self._pieces:
            moment = -(-begin // step) * step
            if moment > end:
                moment = begin
            while moment <= end:
                x = self.x(moment)
                if x <= self._width - LABEL and (not found or x - found[-1].x >= TICK_GAP * 0.8):
                    found.append(Tick(x, _label(moment, step, dated=moment // _DAY != day)))
                    day = moment // _DAY
                moment += step
        return found


def clock(moment: int, *, step: int = 1_000_000) -> str:
    """Return a moment as the time of day in UTC, as exact as the step needs."""
    said = (_EPOCH + timedelta(microseconds=moment)).strftime("%H:%M:%S.%f")
    return said[:8] if step >= 1_000_000 else said[:12]


def date(moment: int) -> str:
    """Return the day of a moment in UTC."""
    return (_EPOCH + timedelta(microseconds=moment)).strftime("%Y-%m-%d")


def _label(moment: int, step: int, *, dated: bool) -> str:
    if step >= _DAY:
        return date(moment)[5:]
    time = clock(moment, step=step)
    time = time[:5] if step >= 60_000_000 and moment % 60_000_000 == 0 else time
    return f"{date(moment)[5:]} {time}" if dated else time


def _merged(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _joined(spans: Sequence[Span], longest: float) -> list[Span]:
    """The spans, with gaps up to the longest closed."""
    found: list[Span] = []
    for begin, end in spans:
        if found and begin - found[-1][1] <= longest:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


# Attempts as bars: a lane for each slot of a worker, so that nothing overlaps in a lane.


@dataclass(frozen=True, slots=True)
class Bar:
    """One attempt, from begin to end, in microseconds since 1970; one that runs ends when the scene was looked at."""

    task: Task
    attempt: Attempt
    begin: int
    end: int


@dataclass(slots=True)
class Lane:
    """The bars of one slot, by time. slot: from 1."""

    worker: str
    slot: int
    bars: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Lanes:
    """All lanes. unstarted: how many attempts have no bar."""

    lanes: tuple[Lane, ...]
    unstarted: int = 0

    @property
    def bars(self) -> list[Bar]:
        """All bars, by their begin."""
        return sorted((bar for lane in self.lanes for bar in lane.bars), key=lambda bar: (bar.begin, bar.end))


def lanes_of(scene: Scene) -> Lanes:
    """Return the attempts of a scene as lanes: each bar in the first slot of its worker that is free."""
    bars, unstarted = [], 0
    for task in scene.inside:
        for attempt in task.attempts:
            if attempt.begin is None:
                unstarted += 1
                continue
            begin = micros(attempt.begin)
            end = micros(scene.at if attempt.end is None else attempt.end)
            bars.append(Bar(task, attempt, begin, max(end, begin + 1)))
    lanes: dict[str, list[Lane]] = {}
    for bar in sorted(bars, key=lambda bar: (bar.begin, bar.end, bar.task.key, bar.attempt.number)):
        mine = lanes.setdefault(bar.attempt.worker, [])
        free = next((lane for lane in mine if lane.bars[-1].end <= bar.begin), None)
        if free is None:
            free = Lane(bar.attempt.worker, len(mine) + 1)
            mine.append(free)
        free.bars.append(bar)
    return Lanes(tuple(lane for worker in sorted(lanes, key=_natural) for lane in lanes[worker]), unstarted)


def micros(seconds: float) -> int:
    """Return a moment in whole microseconds."""
    return round(seconds * 1_000_000)


def peak(lanes: Lanes) -> int:
    """Return how many attempts ran at the same time at most."""
    change: Counter[int] = Counter()
    for bar in lanes.bars:
        change[bar.begin] += 1
        change[bar.end] -= 1
    most = now = 0
    for moment in sorted(change):
        now += change[moment]
        most = max(most, now)
    return most


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts worker-10 behind worker-9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]
