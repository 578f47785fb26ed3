"""Is this machine about to sleep? Whoever puts it to sleep says so with SIGUSR1, and with SIGUSR2 that it is awake.

Law: a sleep that was slept is over even if nobody says so. Two clocks tell: only one goes on while a machine sleeps.
Set by the main thread, read by the loop's as well; single assignments, so no lock is needed.
"""

from __future__ import annotations

import signal

from spoold.system.clock import Clock

ANNOUNCED, OVER = signal.SIGUSR1, signal.SIGUSR2
# The clocks are read one after the other, and a process may be held up in between.
SLEPT_S = 1.0


class Nap:
    """Whether a sleep was announced and is not over yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._apart_s: float | None = None

    def hear(self, number: int) -> None:
        """One of the two signals came. An announcement that is repeated is the same one."""
        if number == OVER:
            self._apart_s = None
        elif not self.due:
            self._apart_s = self._apart()

    @property
    def due(self) -> bool:
        """Whether nothing may run now."""
        apart_s = self._apart_s
        return apart_s is not None and self._apart() - apart_s <= SLEPT_S

    def _apart(self) -> float:
        """How far the clocks have come apart: by all the time (s) that the machine has slept since it was started."""
        return self._clock.boottime() - self._clock.monotonic()
