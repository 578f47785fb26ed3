"""Tasks that this worker could not run, or was asked to try later, and leaves to others for a while.

A program that is not on this machine may be on another, and what a task lacks here just now it may find there: the
other's worker should have the first choice.
"""

from __future__ import annotations

from spoold.system.clock import Clock

# So long (s) for what may go otherwise here next time, and for what cannot until the worker is started anew.
SHY_S, UNABLE_S = 5.0, 3600.0


class Shyness:
    """The keys of such tasks, each until its time is over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def avoid(self, task_key: str, *, unable: bool = False) -> None:
        """Leave it to others from now. unable: this worker's own configuration stands in the way."""
        self._until[task_key] = self._clock.monotonic() + (UNABLE_S if unable else SHY_S)

    def keys(self) -> set[str]:
        """Those that are to be left to others now."""
        if self._until:
            now = self._clock.monotonic()
            self._until = {task_key: until for task_key, until in self._until.items() if until > now}
        return set(self._until)
