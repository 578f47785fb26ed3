"""Attempts as bars: a lane for each slot of a worker, so that nothing overlaps in a lane.

Law: moments are whole microseconds, and a bar is at least one long, so that every format draws the same lanes. An
attempt without a begin (it never started) has no bar, and is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from spoold.pictures.scene import Attempt, Scene, Task


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
