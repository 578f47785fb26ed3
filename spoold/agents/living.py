"""Signs of life: whether a silent agent is at work or hangs, from what its processes use.

Some agents print nothing for a long time: while a subagent of theirs works, or while a command runs.

Law: pure. One that says something lives. One that is silent lives while its processes use the processor, read or
write, or start others, but not for longer than BUSY_TIMES its bound: a busy loop is no work. One that does nothing is
ended after its bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# How many times its bound a silent agent may be at work.
BUSY_TIMES = 8
# At least so much of one processor, or so many bytes a second, is work. Measured in the five known agents while their
# model did not answer: up to 4 % and 15 kB/s.
CPU_SHARE, BYTES_S = 0.1, 65536.0
# How often (s) it is looked at, at most; and into how many parts a bound is divided.
LOOK_S, PARTS = 5.0, 8

# A process, by its id and the time at which it began.
Process = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Bounds:
    """start_s: until its first word; idle_s: the longest silence; both in seconds."""

    start_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What the processes of an agent have used since they began. at: s; used: processor (s), and bytes read and
    written, of each."""

    at: float
    used: Mapping[Process, tuple[float, float]]


def worked(before: Sample, now: Sample) -> bool:
    """Whether anything was done between two samples."""
    if now.used.keys() - before.used.keys():
        return True
    cpu_s, moved, within_s = 0.0, 0.0, now.at - before.at
    for process, (cpu, size) in now.used.items():
        earlier = before.used[process]
        cpu_s, moved = cpu_s + max(0.0, cpu - earlier[0]), moved + max(0.0, size - earlier[1])
    return cpu_s > CPU_SHARE * within_s or moved > BYTES_S * within_s


class Life:
    """One turn of an agent. now: monotonic, s."""

    def __init__(self, bounds: Bounds, now: float) -> None:
        self._bounds, self.idle_s = bounds, bounds.idle_s
        self._spoke = False
        self._last, self._worked = now, now
        self._sample: Sample | None = None

    def speaks(self, now: float) -> None:
        """It said something."""
        self._last, self._spoke = now, True

    def wants(self, now: float) -> bool:
        """Whether it is time for a sample."""
        return self._sample is None or now - self._sample.at >= min(LOOK_S, self._most / PARTS)

    def take(self, sample: Sample) -> None:
        """Take in what its processes have used."""
        if self._sample is None or worked(self._sample, sample):
            self._worked = sample.at
        self._sample = sample

    def over(self, now: float) -> str:
        """Return why it has to be ended; '' while it lives."""
        if now - max(self._last, self._worked) > self._most:
            return f"it said nothing for {self._most:g} s"
        if now - self._last > self._most * BUSY_TIMES:
            return f"it said nothing for {self._most * BUSY_TIMES:g} s, although its processes were busy"
        return ""

    @property
    def _most(self) -> float:
        return self._bounds.idle_s if self._spoke else self._bounds.start_s
