"""Whether this machine is about to sleep: SIGUSR1 announces a sleep, SIGUSR2 its end.

Law: a sleep is over after the machine has slept, also without SIGUSR2. Two clocks show that: only one goes on during
sleep. Set by the main thread, read by the loop's as well; single assignments, so no lock is needed.
"""

from __future__ import annotations

import signal

from spoold.system.clock import Clock

ANNOUNCED, OVER = signal.SIGUSR1, signal.SIGUSR2
# The clocks are read one after the other, and the process may be delayed in between.
SLEPT_S = 1.0


class Nap:
    """Whether a sleep was announced and is not over yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._apart_s: float | None = None

    def hear(self, number: int) -> None:
        """Take one of the two signals. A repeated announcement is the same one."""
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
        """Return the difference of the clocks: all the time (s) that the machine has slept since its start."""
        return self._clock.boottime() - self._clock.monotonic()
