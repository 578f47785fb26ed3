"""When what a view counts is listed again, since the leader counts otherwise.

Law: pure but for the clock that it is given. Journals and snapshots come one after the other, so counts differ for a
moment whenever something happens. A difference counts when it stands still, or has lasted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spoold.protocol.lifecycle import State

# A difference that stands still for so long (s), or that lasts so long while tasks move, is a fault of the view. On a
# share journals are read every few seconds.
STILL_S, STILL_SHARE_S, LASTING_S = 3.0, 15.0, 60.0
# How much of the time listing may take, how many round trips a second, and the least and the longest rest (s).
PART, CALLS_PER_S, REST_S, REST_MOST_S = 0.01, 0.5, 5.0, 600.0


class Relisting:
    """differing: the states whose counts differ now."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.differing: frozenset[State] = frozenset()
        self._since = 0.0
        self._still: tuple[object, ...] = ()
        self._still_since = 0.0
        self._not_before = float("-inf")
        self._in_vain = 0

    def due(
        self, theirs: Mapping[State, int], ours: Mapping[str, int], changes: int, remote: bool
    ) -> frozenset[State]:
        """Return the states to be listed now; none in most cases. changes: the count of changes of the view."""
        now = self._monotonic()
        differing = frozenset(state for state, number in theirs.items() if ours.get(state.value, 0) != number)
        if not differing:
            self.differing, self._in_vain = differing, 0
            return differing
        if not self.differing:
            self._since = now
        self.differing = differing
        still = (changes, *sorted(theirs.items()))
        if still != self._still:
            self._still, self._still_since = still, now
        stands = now - self._still_since >= (STILL_SHARE_S if remote else STILL_S)
        if (stands or now - self._since >= LASTING_S) and now >= self._not_before:
            return differing
        return frozenset()

    def done(self, took_s: float, calls: int, changed: bool) -> None:
        """They were listed. calls: what that cost in round trips; changed: whether it changed anything."""
        self._in_vain = 0 if changed else self._in_vain + 1
        rest_s = max(REST_S, took_s / PART, calls / CALLS_PER_S) * 2 ** min(self._in_vain, 10)
        now = self._monotonic()
        self._not_before = now + min(rest_s, REST_MOST_S)
        self._since = self._still_since = now
