"""The files of runnable tasks, by lane, and in a lane by group, each in order of urgency; and the ready tasks that
make way for a more urgent one.

A group is a set of tasks that the gates asked in every step cannot distinguish. They pass or wait together in one
queue, so that a closed gate costs one question for all tasks behind it, and the others flow past. A queue that is set
aside is not looked at before the one that keeps it back is gone, so that queues without number cost nothing there.

A queue of tasks that stand in line for locks is in the order of that line: of those with the same locks none can pass
the one before it. It has the urgency of its most urgent task: the one in front goes with that.

Law: an order, not the truth. A file stays until it comes to the head of its queue; `stands` says whether it counts.
The fronts are an order of queues: each that is not set aside is in one, under its most urgent file or under one
before that.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Set
from dataclasses import dataclass, field

from spoold.protocol.names import TaskName
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.gate import Pass, Verdict, Wait
from spoold.rules.gates.registry import Groups

# What is shut in a step: groups of a gate, or by its name all of a gate.
Shut = Set[str | tuple[str, Hashable]]
# A queue: its lane and its groups.
Queue = tuple[str, Groups]
# A place in line, which ends with the file.
Place = tuple[int, str]
_NOTHING: Shut = frozenset()


class _Ranked:
    """The files of a queue in the order of urgency."""

    def __init__(self) -> None:
        self._files: list[str] = []

    def __len__(self) -> int:
        return len(self._files)

    def push(self, file: str) -> None:
        heapq.heappush(self._files, file)

    def take(self) -> None:
        """Take the one in front, also where it came, went and came again, and is here twice."""
        file = self._files[0]
        while self._files and self._files[0] == file:
            heapq.heappop(self._files)

    def prune(self, stands: Callable[[str], bool]) -> None:
        """Forget what stands no more, as far as it is in front."""
        while self._files and not stands(self._files[0]):
            heapq.heappop(self._files)

    def before(self, file: str, other: str) -> bool:
        """Whether this file comes before that one."""
        return file < other

    @property
    def front(self) -> str:
        """The one in front."""
        return self._files[0]

    @property
    def urgent(self) -> str:
        """The most urgent one."""
        return self._files[0]


class _InLine:
    """The files of a queue that is in the order of a line: the one in front, and the most urgent one."""

    def __init__(self, place: Callable[[str], Place]) -> None:
        self._place = place
        self._places: list[Place] = []
        self._files: list[str] = []  # by urgency
        self._placed: set[str] = set()
        self._filed: set[str] = set()

    def __len__(self) -> int:
        return len(self._places)

    def push(self, file: str) -> None:
        if file not in self._placed:
            self._placed.add(file)
            heapq.heappush(self._places, self._place(file))
        if file not in self._filed:
            self._filed.add(file)
            heapq.heappush(self._files, file)

    def take(self) -> None:
        """Take the one in front."""
        self._placed.discard(heapq.heappop(self._places)[1])

    def prune(self, stands: Callable[[str], bool]) -> None:
        """Forget what stands no more, as far as it is in front or the most urgent."""
        while self._places and not stands(self._places[0][1]):
            self.take()
        while self._files and not (self._files[0] in self._placed and stands(self._files[0])):
            self._filed.discard(heapq.heappop(self._files))

    def before(self, file: str, other: str) -> bool:
        return self._place(file) < self._place(other)

    @property
    def front(self) -> str:
        return self._places[0][1]

    @property
    def urgent(self) -> str:
        # One that waited when it was looked at, and may run again since, is no longer among these.
        return min(self._files[0], self.front) if self._files else self.front


class Queues:
    """Orders of files, by lane and groups; the fronts of a lane, by the gates that are asked for their tasks."""

    def __init__(
        self,
        stands: Callable[[str, str, Groups], bool],
        in_line: Callable[[Groups], bool] = lambda groups: False,
        place: Callable[[str], Place] = lambda file: (0, file),
    ) -> None:
        """stands: whether this file may run, and is in this lane and these groups; in_line: whether tasks of these
        groups stand in a line; place: of a file in it.
        """
        self._stands, self._in_line, self._place = stands, in_line, place
        self._orders: dict[Queue, _Ranked | _InLine] = {}
        self._fronts: dict[str, dict[tuple[str, ...], list[tuple[str, int, Groups]]]] = {}
        # Of each queue its entry in a front that counts, by file and number; an earlier entry is passed over.
        self._shown: dict[Queue, tuple[str, int]] = {}
        self._numbers = itertools.count()
        # The queues that are set aside, each with the one that keeps it back and the one in front at that time.
        self._aside: dict[Queue, tuple[str, str]] = {}
        self._heads: dict[str, Queue] = {}
        self._behind: dict[str, dict[Queue, None]] = {}
        self._passed: list[Queue] = []

    def push(self, lane: str, groups: Groups, file: str) -> None:
        """Add a file to the order; adding it twice does no harm. A queue set aside is looked at for a new head."""
        queue = (lane, groups)
        order = self._orders.get(queue)
        if order is None:
            order = self._orders[queue] = _InLine(self._place) if self._in_line(groups) else _Ranked()
        order.push(file)
        keeper, head = self._aside.get(queue, ("", ""))
        if keeper and order.before(file, head):
            self._call(queue)
        elif not keeper:
            self._show(queue, order.urgent)

    def lanes(self) -> list[str]:
        """Lanes that may hold a file, in a settled order."""
        return sorted(self._fronts)

    def any_lane(self, wanted: Callable[[str], bool]) -> bool:
        """Whether a lane may hold a file, and is wanted."""
        return any(map(wanted, self._fronts))

    def head(self, lane: str, shut: Shut = _NOTHING) -> tuple[str, str] | None:
        """The file in front of the most urgent queue of a lane that is in none of the shut groups, which stays there;
        and the most urgent file of that queue.

        A queue that is shut is passed over until `restore`.
        """
        queue = self._best(lane, shut)
        return None if queue is None else (self._orders[queue].front, self._orders[queue].urgent)

    def take(self, lane: str, shut: Shut = _NOTHING) -> str | None:
        """Take that file off its queue, which stays in its front under its most urgent file: that may come back."""
        queue = self._best(lane, shut)
        if queue is None:
            return None
        file = self._orders[queue].front
        self._orders[queue].take()
        return file

    def set_aside(self, lane: str, groups: Groups, file: str, keeper: str) -> None:
        """Look at this queue, whose head this file is, no more until `free` of its keeper."""
        queue = (lane, groups)
        self._aside[queue] = (keeper, file)
        self._heads[file] = queue
        self._behind.setdefault(keeper, {})[queue] = None

    def free(self, keeper: str) -> list[str]:
        """Look again at the queues that this one keeps back; return those in front of them."""
        return [head for queue in list(self._behind.get(keeper, ())) if (head := self._call(queue))]

    def keeps(self, keeper: str) -> bool:
        """Whether this one keeps a queue back."""
        return keeper in self._behind

    def keepers(self) -> list[str]:
        """Those that keep a queue back."""
        return list(self._behind)

    def aside(self) -> Iterator[tuple[str, str, int]]:
        """The queues that are set aside: the file in front, its keeper, and how many files are in it at most."""
        for queue, (keeper, _) in self._aside.items():
            if order := self._pruned(queue):
                yield order.front, keeper, len(order)

    def keeper(self, file: str) -> str:
        """The keeper of the queue that is set aside with this file in front; '' for none."""
        queue = self._heads.get(file)
        return self._aside[queue][0] if queue is not None else ""

    def without(self, file: str) -> None:
        """Look again at the queue that was set aside with this file in front, and now has another one there."""
        if (queue := self._heads.get(file)) is not None:
            self._call(queue)

    def passed(self) -> Iterator[tuple[str, Queue]]:
        """The queues that were passed over since the last `restore`, each with the file in front."""
        for queue in self._passed:
            if order := self._pruned(queue):
                yield order.front, queue

    def restore(self) -> None:
        """Show again the queues that were passed over."""
        passed, self._passed = self._passed, []
        for queue in passed:
            if queue not in self._aside and (order := self._pruned(queue)):
                self._show(queue, order.urgent)

    def _call(self, queue: Queue) -> str | None:
        """Bring a queue back that was set aside; return the file in front of it."""
        keeper, head = self._aside.pop(queue)
        self._heads.pop(head, None)
        del self._behind[keeper][queue]
        if not self._behind[keeper]:
            del self._behind[keeper]
        order = self._pruned(queue)
        if not order:
            return None
        self._show(queue, order.urgent)
        return order.front

    def _show(self, queue: Queue, head: str) -> None:
        """Put a queue into its front, unless it is there under this head or a file before it."""
        if queue in self._shown and self._shown[queue][0] <= head:
            return
        self._shown[queue] = entry = (head, next(self._numbers))
        front = self._fronts.setdefault(queue[0], {}).setdefault(_gates(queue[1]), [])
        heapq.heappush(front, (*entry, queue[1]))

    def _pruned(self, queue: Queue) -> _Ranked | _InLine | None:
        """A queue whose file in front stands; None, and forgotten, if it has none."""
        order = self._orders.get(queue)
        if order is None:
            return None
        order.prune(lambda file: self._stands(file, *queue))
        if not order:
            del self._orders[queue]
            return None
        return order

    def _best(self, lane: str, shut: Shut) -> Queue | None:
        """The most urgent queue of a lane that is in none of the shut groups."""
        best: tuple[str, Queue] | None = None
        for gates in tuple(self._fronts.get(lane, ())):
            found = self._first(lane, gates, shut) if shut.isdisjoint(gates) else None
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return None if best is None else best[1]

    def _first(self, lane: str, gates: tuple[str, ...], shut: Shut) -> tuple[str, Queue] | None:
        """The most urgent file of one front, which is brought up to date as far as that, and its queue."""
        front = self._fronts[lane][gates]
        while front:
            file, number, groups = front[0]
            queue = (lane, groups)
            counts = self._shown.get(queue) == (file, number)
            order = self._pruned(queue) if counts and queue not in self._aside else None
            passed = order is not None and not shut.isdisjoint(groups)
            if order is not None and order.urgent == file and not passed:
                return file, queue
            heapq.heappop(front)
            if counts:
                del self._shown[queue]
            if passed:
                self._passed.append(queue)
            elif order is not None:
                self._show(queue, order.urgent)
        del self._fronts[lane][gates]
        if not self._fronts[lane]:
            del self._fronts[lane]
        return None


def _gates(groups: Groups) -> tuple[str, ...]:
    return tuple(gate for gate, _ in groups)


# The ready tasks that make way: each holds what a more urgent waiting task lacks, and no worker has taken it yet.
# What a task in ready/ holds is of use to nobody before a worker takes it: units of a limit, locks, a budget, the
# trial of a quota or of a breaker, a slot of a class. Meanwhile more urgent tasks go past it, for as long as they
# come.
# Law: a task makes way only for a more urgent one, which then goes at once, and none makes way that need not. So no
# task waits without end behind less urgent ones.


@dataclass(frozen=True, slots=True)
class Standing:
    """A task in ready/, or one that runs. conditions: what it says of budgets and locks. waits: for other tasks, its
    slot lent; idle: it has done so for long, or its machine sleeps.
    """

    task: TaskName
    lane: str
    conditions: Conditions = NO_CONDITIONS
    waits: bool = False
    idle: bool = False


@dataclass(slots=True)
class Way:
    """Who makes way for whom in one step. ready: asked only if a waiting task finds too little of something left.

    running: the claimed tasks, asked only if a waiting task has a part of what it needs.
    made: those that make way, by the file of the task that goes. kept: by resource, for which waiting tasks units are
    kept back, by file, with their number, the most urgent first. wanted: by resource, the file of the first task that
    lacks it, and how many units it wants: no later one may take any.
    """

    ready: Callable[[], Iterable[Standing]] = tuple
    running: Callable[[], Iterable[Standing]] = tuple
    made: dict[str, list[Standing]] = field(default_factory=dict)
    kept: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    wanted: dict[str, tuple[str, int]] = field(default_factory=dict)
    _least: list[Standing] | None = None
    _freed: list[Standing] = field(default_factory=list)

    def clear(
        self,
        rank: int,
        verdict: Verdict,
        ask: Callable[[], Verdict],
        free: Callable[[Standing], None],
        holds: Callable[[Wait, Standing], bool],
    ) -> Verdict:
        """Free what less urgent tasks hold until the gates pass, the least urgent first; return the last verdict.

        rank: of the task that wants to go; ask: for the verdict anew; holds: whether a task has what is waited for.
        """
        count = 1
        while isinstance(verdict, Wait):
            wait, found = verdict, list[Standing]()
            for one in self._less_urgent(rank):
                if len(found) < count and holds(wait, one):
                    found.append(one)
            if not found:
                break
            for one in found:
                free(one)
                self._freed.append(one)
            verdict, count = ask(), 2 * count  # few questions, however many hold a little each
        return verdict

    def cancel(self, take: Callable[[Standing], None]) -> None:
        """Give all of them back what they had: the task does not go."""
        for one in self._freed:
            take(one)
        self._freed.clear()

    def settle(
        self,
        file: str,
        passes: Callable[[], bool],
        free: Callable[[Standing], None],
        take: Callable[[Standing], None],
    ) -> None:
        """Let the task of this file go. Those that need not make way stay, the most urgent first."""
        if not self._freed:
            return
        gone = []
        for one in sorted(self._freed, key=_urgency):
            take(one)
            if not passes():
                free(one)
                gone.append(one)
        self.made[file] = gone
        self._freed.clear()
        assert self._least is not None
        self._least = [one for one in self._least if one not in gone]

    def _less_urgent(self, rank: int) -> Iterable[Standing]:
        """The tasks that may make way for one of this rank, the least urgent first."""
        if self._least is None:
            self._least = sorted(self.ready(), key=_urgency, reverse=True)
        for one in self._least:
            if one.task.rank <= rank:
                return
            if one not in self._freed:
                yield one


def _urgency(one: Standing) -> tuple[int, str]:
    return one.task.rank, one.task.order


def passes(verdict: Verdict) -> bool:
    """Whether a gate lets a task go."""
    return isinstance(verdict, Pass)
