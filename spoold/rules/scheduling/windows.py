"""The sliding window of a rate: the starts of the last seconds, and when it has room again.

Law: the window is a little longer than the rate says: a task starts some moments after it was claimed, and two such
moments may differ.
"""

from __future__ import annotations

from collections import deque

# How much longer, as a fraction of the rate's own time, and at most (s).
LONGER, LONGER_MAX_S = 0.1, 1.0


class Window:
    """The starts within the last seconds. Moments are monotonic (s)."""

    def __init__(self, count: int, per_s: float) -> None:
        """count: units that may begin within per_s seconds."""
        self._starts: deque[tuple[float, int]] = deque()
        self._units = 0
        self._count, self._per_s = count, per_s

    @property
    def length_s(self) -> float:
        """For how long (s) a start counts."""
        return self._per_s + min(LONGER * self._per_s, LONGER_MAX_S)

    def change(self, count: int, per_s: float) -> None:
        """Go by another rate from now on; starts that were forgotten stay so."""
        self._count, self._per_s = count, per_s

    def add(self, moment: float, units: int) -> None:
        """Count a start; no earlier than those before it."""
        self._starts.append((moment, units))
        self._units += units

    def used(self, now: float) -> int:
        """How many units have begun within the window. More than there may be count as so many."""
        while self._starts and self._starts[0][0] + self.length_s <= now:
            self._units -= self._starts.popleft()[1]
        return min(self._units, self._count)

    def opens(self, now: float) -> float | None:
        """When (monotonic, s) the next start leaves the window; None if there is none in it."""
        over = 0
        for moment, own in self._starts:
            over += own
            if self._units - over < self._count:
                return max(now, moment + self.length_s)
        return None
