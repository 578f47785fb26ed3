"""The files of runnable tasks, by lane, and in a lane by group; each in order of urgency.

A group is a set of tasks that the gates asked in every step cannot distinguish. They pass or wait together in one
queue, so that a closed gate costs one question for all tasks behind it, and the others flow past.

Law: an order, not the truth. A file stays until it comes to the head of its queue; `stands` says whether it counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Set

from spoold.rules.gates.registry import Groups


class Queues:
    """Heaps of files, by lane and groups."""

    def __init__(self, stands: Callable[[str, str, Groups], bool]) -> None:
        """stands: whether this file may run, and is in this lane and these groups."""
        self._stands = stands
        self._heaps: dict[str, dict[Groups, list[str]]] = {}

    def push(self, lane: str, groups: Groups, file: str) -> None:
        """Add a file to the order; adding it twice does no harm."""
        heapq.heappush(self._heaps.setdefault(lane, {}).setdefault(groups, []), file)

    def lanes(self) -> list[str]:
        """Lanes that may hold a file, in a settled order."""
        return sorted(self._heaps)

    def any_lane(self, wanted: Callable[[str], bool]) -> bool:
        """Whether a lane may hold a file, and is wanted."""
        return any(map(wanted, self._heaps))

    def heads(self, lane: str) -> Iterator[tuple[str, Groups]]:
        """The most urgent file of each queue of a lane, with its groups."""
        for groups in list(self._heaps.get(lane, ())):
            file = self.head(lane, groups)
            if file is not None:
                yield file, groups

    def head(self, lane: str, groups: Groups) -> str | None:
        """The most urgent file of one queue; it stays there."""
        heap = self._heaps.get(lane, {}).get(groups, [])
        while heap:
            if self._stands(heap[0], lane, groups):
                return heap[0]
            heapq.heappop(heap)
        self._tidy(lane, groups)
        return None

    def take(self, lane: str, groups: Groups) -> str | None:
        """Take the most urgent file off one queue."""
        file = self.head(lane, groups)
        if file is not None:
            heap = self._heaps[lane][groups]
            while heap and heap[0] == file:
                heapq.heappop(heap)  # repeatedly: a task that came, went and came again is in the heap twice
            self._tidy(lane, groups)
        return file

    def best(self, lane: str, shut: Set[tuple[str, Hashable]]) -> str | None:
        """The most urgent file of a lane that is in none of the shut groups."""
        best = None
        for groups in tuple(self._heaps.get(lane, ())):
            file = self.head(lane, groups) if shut.isdisjoint(groups) else None
            if file is not None and (best is None or file < best):
                best = file
        return best

    def _tidy(self, lane: str, groups: Groups) -> None:
        """Forget an empty queue, and a lane without queues."""
        queues = self._heaps.get(lane, {})
        if not queues.get(groups, True):
            del queues[groups]
            if not queues:
                del self._heaps[lane]
