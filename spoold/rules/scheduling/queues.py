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
from spoold.rules.gates.lock_holders import points
from spoold.rules.gates.registry import Groups
from spoold.rules.scheduling.fair_shares import Turns

# What is shut in a step: groups of a gate, or by its name all of a gate.
Shut = Set[str | tuple[str, Hashable]]
# A queue: its lane and its groups.
Queue = tuple[str, Groups]
# A place in line, which ends with the file.
Place = tuple[int, str]
_NOTHING: Shut = frozenset()


class _Ranked:
    """The files of a queue: the shares in the order of their turns, and of each its files in the order of urgency.

    An entry of a share in `_fronts` counts if `_shown` names it. Turns only come later, so an entry is brought up to
    date when it comes to the front.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._files: dict[str, list[str]] = {}
        self._fronts: list[tuple[str, str]] = []
        self._shown: dict[str, str] = {}
        # Of each share the file in front of it, and since when (microseconds) that is there.
        self._since: dict[str, tuple[str, int]] = {}
        self._taken = ("", 0)  # the same of the file that was taken last, which may come back

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    def __bool__(self) -> bool:
        return bool(self._files)

    def push(self, share: str, file: str) -> None:
        files = self._files.setdefault(share, [])
        heapq.heappush(files, file)
        if files[0] == file:
            if file == self._taken[0]:
                self._since[share] = self._taken
            self._show(share)

    def take(self) -> None:
        """Take the one in front, also where it came, went and came again, and is here twice."""
        share = self._fronts[0][1]
        files, file = self._files[share], self.front
        self._taken = self._since[share]
        while files and files[0] == file:
            heapq.heappop(files)
        self._show_anew(share)

    def prune(self, stands: Callable[[str, str], bool]) -> None:
        """Forget what stands no more, as far as it is in front. stands: of a share and a file."""
        while self._fronts:
            urgency, share = self._fronts[0]
            if self._shown.get(share) != urgency:
                heapq.heappop(self._fronts)
                continue
            files = self._files[share]
            while files and not stands(share, files[0]):
                heapq.heappop(files)
            if files and self._urgency(share) == urgency:
                return
            self._show_anew(share)

    def before(self, file: str, other: str) -> bool:
        """Whether this file comes before that one, of the same share."""
        return file < other

    def refresh(self) -> None:
        """Order the shares anew: one waits alone now."""
        for share in list(self._files):
            self._show(share)

    @property
    def front(self) -> str:
        """The one in front."""
        return self._files[self._fronts[0][1]][0]

    @property
    def urgent(self) -> str:
        """The urgency of the one in front."""
        return self._fronts[0][0]

    def _urgency(self, share: str) -> str:
        file = self._files[share][0]
        if self._since.get(share, ("", 0))[0] != file:
            self._since[share] = file, self._turns.now
        return urgency_of(self._turns, share, file, self._since[share][1])

    def _show(self, share: str) -> None:
        """Put a share into the order, unless it is there with this urgency or one before it."""
        urgency = self._urgency(share)
        if share not in self._shown or urgency < self._shown[share]:
            self._shown[share] = urgency
            heapq.heappush(self._fronts, (urgency, share))

    def _show_anew(self, share: str) -> None:
        """The share in front has another file there, or its turn comes later, or it has no file left."""
        heapq.heappop(self._fronts)
        del self._shown[share]
        if self._files[share]:
            self._show(share)
        else:
            del self._files[share]
            self._since.pop(share, None)


class _InLine:
    """The files of a queue that is in the order of a line: the one in front, and the most urgent one. The first file
    of each share has its place in line; the others come after it.
    """

    def __init__(self, turns: Turns, place: Callable[[str], Place]) -> None:
        self._turns, self._place = turns, place
        self._places: dict[str, list[Place]] = {}  # by share
        self._fronts: list[tuple[int, str, str]] = []  # place in line, file, share
        self._first: dict[str, str] = {}  # of each share the file in front, which has a place
        self._entered: set[tuple[str, str]] = set()  # the files in _fronts, each with its share there
        # The shares whose first file was taken: the next one gets its place once that has started, or came back.
        self._taken: set[str] = set()
        self._files: list[str] = []  # by urgency
        self._placed: dict[str, str] = {}  # files with their share: it may become another one
        self._filed: set[str] = set()

    def __len__(self) -> int:
        return len(self._placed)

    def push(self, share: str, file: str) -> None:
        if self._placed.get(file) != share:
            self._placed[file] = share
            heapq.heappush(self._places.setdefault(share, []), self._place(file))
            self._taken.add(share)
        if file not in self._filed:
            self._filed.add(file)
            heapq.heappush(self._files, file)

    def take(self) -> None:
        """Take the one in front."""
        share = self._fronts[0][2]
        self._remove_first(share)
        self._taken.add(share)

    def prune(self, stands: Callable[[str, str], bool]) -> None:
        """Forget what stands no more, as far as it is in front or the most urgent. stands: of a share and a file."""
        self._look_at_taken()
        while self._fronts and not (self._counts() and stands(self._fronts[0][2], self._fronts[0][1])):
            if self._counts():
                self._drop(self._fronts[0][2])
            else:
                self._pass()
        while self._files and not self._stands_somewhere(stands, self._files[0]):
            self._filed.discard(heapq.heappop(self._files))

    def before(self, file: str, other: str) -> bool:
        """Whether this file comes before that one, which is in front."""
        return self.front == file != other

    def refresh(self) -> None:
        """Places in line stay."""

    @property
    def front(self) -> str:
        self._look_at_taken()
        while not self._counts():
            self._pass()
        return self._fronts[0][1]

    @property
    def urgent(self) -> str:
        # One that waited when it was looked at, and may run again since, is no longer among these.
        front = self.front
        file = min(self._files[0], front) if self._files else front
        place = self._turns.place(front) if self._turns.active else None
        return urgency(file, 0 if place is None else max(0, place + points(front)))

    def _counts(self) -> bool:
        _, file, share = self._fronts[0]
        return self._first.get(share) == file

    def _pass(self) -> None:
        _, file, share = heapq.heappop(self._fronts)
        self._entered.discard((share, file))

    def _stands_somewhere(self, stands: Callable[[str, str], bool], file: str) -> bool:
        return file in self._placed and stands(ANY, file)

    def _drop(self, share: str) -> None:
        self._remove_first(share)
        self._look(share)

    def _remove_first(self, share: str) -> None:
        file = heapq.heappop(self._places[share])[1]
        if self._placed.get(file) == share:
            del self._placed[file]

    def _look_at_taken(self) -> None:
        for share in sorted(self._taken):
            self._look(share)
        self._taken.clear()

    def _look(self, share: str) -> None:
        """The file in front of a share may be another one now."""
        files, before = self._places.get(share, []), self._first.pop(share, "")
        while files and self._placed.get(files[0][1]) != share:
            heapq.heappop(files)
        if not files:
            self._places.pop(share, None)
            return
        file = files[0][1]
        self._first[share] = file
        if file != before:
            place = self._turns.give_place(share, files[0], before if before in self._placed else "")
            if (share, file) not in self._entered:
                self._entered.add((share, file))
                heapq.heappush(self._fronts, (place, file, share))


# The urgency of a file in front of a queue: text that sorts as the tasks go. First by rank, then by the turn of its
# share, then as names do.
# Stands for any share, where one asks whether a file stands.
ANY = "*"


def urgency(file: str, turn: int) -> str:
    """The urgency of a file. turn: microseconds since 1970; 0 where nobody takes turns."""
    return f"{file[:4]}.{turn:016d}.{file}"


def urgency_of(turns: Turns, share: str, file: str, front: int) -> str:
    """The urgency of a file. front: since when (microseconds) it is in front of its share."""
    return urgency(file, turns.since(share, file, front) if turns.active else 0)


class Queues:
    """Orders of files, by lane and groups; the fronts of a lane, by the gates that are asked for their tasks."""

    def __init__(
        self,
        stands: Callable[[str, str, Groups], bool],
        in_line: Callable[[Groups], bool] = lambda groups: False,
        place: Callable[[str], Place] = lambda file: (0, file),
        share: Callable[[str], str] = lambda file: "",
        turns: Turns | None = None,
    ) -> None:
        """stands: whether this file may run, and is in this lane and these groups; in_line: whether tasks of these
        groups stand in a line; place: of a file in it, among those of its share; share: that of a file.
        """
        self._stands, self._in_line, self._place = stands, in_line, place
        self._share, self.turns = share, turns or Turns()
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
            order = self._orders[queue] = self._new(groups)
        order.push(self._share(file), file)
        keeper, head = self._aside.get(queue, ("", ""))
        if keeper and order.before(file, head):
            self._call(queue)
        elif not keeper:
            self._show(queue, order.urgent)

    def _new(self, groups: Groups) -> _Ranked | _InLine:
        return _InLine(self.turns, self._place) if self._in_line(groups) else _Ranked(self.turns)

    def refresh(self) -> None:
        """Order all anew: only one share waits now, and nobody takes turns."""
        for queue, order in self._orders.items():
            order.refresh()
            if order and queue not in self._aside and queue in self._shown:
                self._show(queue, order.urgent)

    def lanes(self) -> list[str]:
        """Lanes that may hold a file, in a settled order."""
        return sorted(self._fronts)

    def any_lane(self, wanted: Callable[[str], bool]) -> bool:
        """Whether a lane may hold a file, and is wanted."""
        return any(map(wanted, self._fronts))

    def head(self, lane: str, shut: Shut = _NOTHING) -> tuple[str, str] | None:
        """The file in front of the most urgent queue of a lane that is in none of the shut groups, which stays there;
        and the urgency of that queue.

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
        order.prune(
            lambda share, file: (
                self._stands(file, *queue) and share in (ANY, self._share(file))
            )  # it may have changed
        )
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
