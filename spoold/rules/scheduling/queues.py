"""The files of runnable tasks, by lane, and in a lane by group; each in order of urgency.

A group is a set of tasks that the gates asked in every step cannot distinguish. They pass or wait together in one
queue, so that a closed gate costs one question for all tasks behind it, and the others flow past. A queue that is set
aside is not looked at before the one that keeps it back is gone, so that queues without number cost nothing there.

Law: an order, not the truth. A file stays until it comes to the head of its queue; `stands` says whether it counts.
The fronts are an order of queues: each that is not set aside is in one, under its head or under a file before that.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator, Set

from spoold.rules.gates.registry import Groups

# What is shut in a step: groups of a gate, or by its name all of a gate.
Shut = Set[str | tuple[str, Hashable]]
# A queue: its lane and its groups.
Queue = tuple[str, Groups]
_NOTHING: Shut = frozenset()


class Queues:
    """Heaps of files, by lane and groups; the fronts of a lane, by the gates that are asked for the tasks in them."""

    def __init__(self, stands: Callable[[str, str, Groups], bool]) -> None:
        """stands: whether this file may run, and is in this lane and these groups."""
        self._stands = stands
        self._heaps: dict[Queue, list[str]] = {}
        self._fronts: dict[str, dict[tuple[str, ...], list[tuple[str, int, Groups]]]] = {}
        # Of each queue its entry in a front that counts, by file and number; an earlier entry is passed over.
        self._shown: dict[Queue, tuple[str, int]] = {}
        self._numbers = itertools.count()
        # The queues that are set aside, each with the one that keeps it back and its head at that time.
        self._aside: dict[Queue, tuple[str, str]] = {}
        self._behind: dict[str, dict[Queue, None]] = {}
        self._passed: list[Queue] = []

    def push(self, lane: str, groups: Groups, file: str) -> None:
        """Add a file to the order; adding it twice does no harm. A queue set aside is looked at for a new head."""
        queue = (lane, groups)
        heap = self._heaps.setdefault(queue, [])
        heapq.heappush(heap, file)
        keeper, head = self._aside.get(queue, ("", ""))
        if keeper and file < head:
            self._call(queue)
        elif not keeper:
            self._show(queue, heap[0])

    def lanes(self) -> list[str]:
        """Lanes that may hold a file, in a settled order."""
        return sorted(self._fronts)

    def any_lane(self, wanted: Callable[[str], bool]) -> bool:
        """Whether a lane may hold a file, and is wanted."""
        return any(map(wanted, self._fronts))

    def head(self, lane: str, shut: Shut = _NOTHING) -> tuple[str, Groups] | None:
        """The most urgent file of a lane that is in none of the shut groups, with its groups; it stays there.

        A queue that is shut is passed over until `restore`.
        """
        best: tuple[str, Groups] | None = None
        for gates in tuple(self._fronts.get(lane, ())):
            found = self._first(lane, gates, shut) if shut.isdisjoint(gates) else None
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return best

    def take(self, lane: str, shut: Shut = _NOTHING) -> str | None:
        """Take that file off its queue. The queue stays in its front under that file, since it may come back."""
        found = self.head(lane, shut)
        if found is None:
            return None
        file, groups = found
        heap = self._heaps[lane, groups]
        while heap and heap[0] == file:
            heapq.heappop(heap)  # repeatedly: a task that came, went and came again is in the heap twice
        return file

    def set_aside(self, lane: str, groups: Groups, file: str, keeper: str) -> None:
        """Look at this queue, whose head this file is, no more until `free` of its keeper."""
        queue = (lane, groups)
        self._aside[queue] = (keeper, file)
        self._behind.setdefault(keeper, {})[queue] = None

    def free(self, keeper: str) -> list[str]:
        """Look again at the queues that this one keeps back; return their heads."""
        return [head for queue in list(self._behind.get(keeper, ())) if (head := self._call(queue))]

    def keeps(self, keeper: str) -> bool:
        """Whether this one keeps a queue back."""
        return keeper in self._behind

    def keepers(self) -> list[str]:
        """Those that keep a queue back."""
        return list(self._behind)

    def aside(self) -> Iterator[tuple[str, str, int]]:
        """The queues that are set aside: the head of each, its keeper, and how many files are in it at most."""
        for queue, (keeper, _) in self._aside.items():
            if heap := self._pruned(queue):
                yield heap[0], keeper, len(heap)

    def passed(self) -> Iterator[tuple[str, Queue]]:
        """The queues that were passed over since the last `restore`, each with its most urgent file."""
        for queue in self._passed:
            if heap := self._pruned(queue):
                yield heap[0], queue

    def restore(self) -> None:
        """Show again the queues that were passed over."""
        passed, self._passed = self._passed, []
        for queue in passed:
            if queue not in self._aside and (heap := self._pruned(queue)):
                self._show(queue, heap[0])

    def _call(self, queue: Queue) -> str | None:
        """Bring a queue back that was set aside; return its head."""
        keeper, _ = self._aside.pop(queue)
        del self._behind[keeper][queue]
        if not self._behind[keeper]:
            del self._behind[keeper]
        heap = self._pruned(queue)
        if heap:
            self._show(queue, heap[0])
        return heap[0] if heap else None

    def _show(self, queue: Queue, head: str) -> None:
        """Put a queue into its front, unless it is there under this head or a file before it."""
        if queue in self._shown and self._shown[queue][0] <= head:
            return
        self._shown[queue] = entry = (head, next(self._numbers))
        front = self._fronts.setdefault(queue[0], {}).setdefault(_gates(queue[1]), [])
        heapq.heappush(front, (*entry, queue[1]))

    def _pruned(self, queue: Queue) -> list[str]:
        """The heap of a queue, whose head stands; an empty one is forgotten."""
        heap = self._heaps.get(queue, [])
        while heap and not self._stands(heap[0], *queue):
            heapq.heappop(heap)
        if not heap:
            self._heaps.pop(queue, None)
        return heap

    def _first(self, lane: str, gates: tuple[str, ...], shut: Shut) -> tuple[str, Groups] | None:
        """The most urgent file of one front, which is brought up to date as far as that."""
        front = self._fronts[lane][gates]
        while front:
            file, number, groups = front[0]
            queue = (lane, groups)
            counts = self._shown.get(queue) == (file, number)
            heap = self._pruned(queue) if counts and queue not in self._aside else []
            passed = bool(heap) and not shut.isdisjoint(groups)
            if heap and heap[0] == file and not passed:
                return file, groups
            heapq.heappop(front)
            if counts:
                del self._shown[queue]
            if passed:
                self._passed.append(queue)
            elif heap:
                self._show(queue, heap[0])
        del self._fronts[lane][gates]
        if not self._fronts[lane]:
            del self._fronts[lane]
        return None


def _gates(groups: Groups) -> tuple[str, ...]:
    return tuple(gate for gate, _ in groups)
