"""The clock port: a clock for each question.

Law: nothing above this room calls `time` itself. Intervals are measured with `monotonic`, self-fencing with
`boottime` (the monotonic clock stands still while a laptop sleeps, its lease does not), and `wall` is for
people only: it is never compared between machines. `used` tells a busy process from one that did not run.

Touches: the clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time in seconds. None of the methods raises."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back; may stand still in suspend. For intervals."""
        ...

    def boottime(self) -> float:
        """Seconds since boot, suspend included. For leases that must end while the machine sleeps."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, as this machine believes. For people; may jump either way."""
        ...

    def used(self) -> float:
        """Seconds of processor time that this process, with all its threads, has used."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        return time.time()

    def used(self) -> float:
        return time.process_time()


class ManualClock:
    """A clock that moves only on request, for tests and the simulator.

    `advance` is time spent awake; `work` is the same with a busy processor; `suspend` is a closed lid, in which the
    monotonic clock stands still; `set_wall` is a user setting the date.
    """

    def __init__(self, *, monotonic: float = 1000.0, boottime: float = 1000.0, wall: float = 1_760_000_000.0) -> None:
        self._monotonic = monotonic
        self._boottime = boottime
        self._wall = wall
        self._used = 0.0

    def monotonic(self) -> float:
        return self._monotonic

    def boottime(self) -> float:
        return self._boottime

    def wall(self) -> float:
        return self._wall

    def used(self) -> float:
        return self._used

    def work(self, seconds: float) -> None:
        """Let `seconds` pass in which this process uses a processor. Raises ValueError if negative."""
        self.advance(seconds)
        self._used += seconds

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on all three clocks. Raises ValueError if negative."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back: {seconds}")
        self._monotonic += seconds
        self._boottime += seconds
        self._wall += seconds

    def suspend(self, seconds: float) -> None:
        """Let `seconds` pass as in suspend: boottime and wall go on, monotonic does not."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back: {seconds}")
        self._boottime += seconds
        self._wall += seconds

    def set_wall(self, seconds: float) -> None:
        """Set the date, forwards or back; intervals do not notice."""
        self._wall = seconds
