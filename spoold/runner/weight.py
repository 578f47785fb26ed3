"""runner/weight: how much memory one job holds, and whether that is more than it may hold.

Law: a page that processes share counts once. The sum of their resident sizes counts it once for each: a sum above the
cap leads to a weighing, which takes longer. Two weighings in a row above the cap end the job. Nothing here touches
the system. All sizes are bytes. The supervisor loads it: kept small.
"""

from __future__ import annotations

_TWICE = 2


class Weight:
    """The memory that a job holds now and held at most, by the looks so far. limit: its cap, None for none."""

    __slots__ = ("_above", "excess", "held", "limit", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.held = 0
        self.peak = 0
        self.excess = ""  # the sentence, once the job has to end
        self._above = 0

    def look(self, resident: int) -> bool:
        """Take the sum of all resident sizes; return whether the processes must be weighed."""
        if self.limit is not None and resident > self.limit:
            return True
        self._above = 0
        self._hold(resident)
        return False

    def weigh(self, share: int, unread: int) -> None:
        """Take the result of a weighing, each page counted once. unread: processes with all shared pages counted."""
        self._hold(share)
        if self.limit is None or share <= self.limit:
            self._above = 0
            return
        self._above += 1
        if self._above >= _TWICE:
            self.excess = f"used {share >> 20} MiB of memory, {self.limit >> 20} MiB are allowed"
            if unread:
                self.excess += f" (memory that {unread} of its processes share with others is counted more than once)"

    @property
    def doubtful(self) -> bool:
        """Whether the last weighing was above the cap, so that the next should come soon."""
        return self._above > 0

    def _hold(self, held: int) -> None:
        self.held = held
        self.peak = max(self.peak, held)
