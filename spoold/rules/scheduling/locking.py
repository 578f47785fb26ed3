"""Who waits behind whom: the queues that the gate `locks` sets aside, and when they are looked at again.

Law: a queue that waits behind a holder, or behind a task in line, costs nothing until that one is gone. At most
SET_ASIDE queues are set aside in one step. A task stands in line only while it waits for nothing but locks, or for
what is kept back for it besides (see `keeping_back`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set

from spoold.protocol.name_parts import key_in
from spoold.protocol.names import TaskName, key
from spoold.rules.gates.registry import Groups
from spoold.rules.gates.verdicts import Wait
from spoold.rules.locks.book import Book
from spoold.rules.locks.demand import Demand
from spoold.rules.locks.turns import Waiter, turn_of
from spoold.rules.scheduling.queues import Queues

SET_ASIDE = 500
# So long (s) a holder in ready/ whose turn was earlier keeps its locks from a more urgent task.
STAND_S = 10.0


class Locking:
    """The book of locks, and the queues behind those in it.

    gone: keys of those that left the line, for the next step; called: heads that are to be asked about in this step;
    aside: how many queues were set aside in it. strangers: holders that this leader did not make so itself.
    stood: the holders in ready/ that keep others back, each with when (monotonic, s) that was first seen. firm: keys
    of those in line for which something is kept back in this step; shown: those of them whose queue is not set aside.
    """

    def __init__(self, queues: Queues) -> None:
        self.book = Book()
        self.strangers: set[str] = set()
        self.stood: dict[str, float] = {}
        self._firm: set[str] = set()
        self._shown: set[str] = set()
        self._late: set[str] = set()
        self._queues = queues
        self._gone: dict[str, None] = {}
        self._called: dict[str, None] = {}
        self._aside = 0

    @property
    def left(self) -> bool:
        """Whether the next step has more to ask at once."""
        return bool(self._gone) or self._aside >= SET_ASIDE

    def hold(self, held: Mapping[str, Demand | None]) -> None:
        """Take these for the holders, by key; look again at what only waited for one that is gone."""
        before = self.book.held
        self.strangers &= held.keys()
        self.strangers |= {k for k, demand in held.items() if k not in before or before[k] != demand}
        for changed in sorted(self.book.begin(held)):
            self._call(changed)
        for gone in self._gone:
            if gone not in held and gone not in self.book.line:
                self._call(gone)
        self._gone.clear()

    def begin_step(self, now: float) -> None:
        """Begin a step: what was passed over in the last one is shown again. now: monotonic, s.

        What waits behind a holder that no worker has taken for STAND_S is asked about again, once.
        """
        self._queues.restore()
        self._aside = 0
        for late in [task_key for task_key, due in self._due() if due <= now]:
            self._late.add(late)
            self._call(late)

    def see_ready(self, ready: Callable[[str], bool]) -> None:
        """Forget the holders in ready/ that are there no more. ready: whether one is, by its key."""
        self.stood = {task_key: since for task_key, since in self.stood.items() if ready(task_key)}
        self._late &= self.stood.keys()

    def next_due(self) -> float | None:
        """When (monotonic, s) a holder in ready/ has stood for long enough."""
        return min((due for _, due in self._due()), default=None)

    def passes(self, file: str, stands: TaskName, now: float) -> bool:
        """Whether a less urgent task that stands in ready/ gives its locks up for this one: it would be later in
        line, or no worker has taken it for STAND_S. now: monotonic, s.
        """
        task_key = key(stands.id)
        self.stood.setdefault(task_key, now)
        return turn_of(file) < turn_of(stands.encode()) or task_key in self._late

    def _due(self) -> Iterator[tuple[str, float]]:
        return ((k, since + STAND_S) for k, since in self.stood.items() if k not in self._late)

    def pass_over(self, lanes: Set[str]) -> None:
        """Let tasks of these lanes keep nobody back: they wait for something else than locks."""
        line, new = self.book.line, lanes - self.book.line.shut
        line.shut = lanes
        for keeper in self._queues.keepers() if new else ():
            waiter = line.get(keeper)
            firm = keeper in self.book.held or keeper in line.firm
            if waiter is not None and waiter.lane in new and not firm:
                self._call(keeper)

    def see_parents(self, parents: Set[str], idle: Set[str]) -> bool:
        """Take these for the tasks that wait for others, and that have done so for long. Returns whether one of them
        holds locks, and did not before: all that stand behind others in line are asked about then, and may pass them.
        """
        new = (parents - self.book.parents) | (idle - self.book.idle)
        self.book.parents, self.book.idle = frozenset(parents), idle
        if new.isdisjoint(self.book.held):
            return False
        for keeper in self._queues.keepers():
            if keeper not in self.book.held:
                self._call(keeper)
        return True

    def behind(self) -> Iterator[tuple[str, str, str]]:
        """The first in line that are not asked about, since a holder keeps them back: key, lane and that holder's."""
        for task_key, waiter in self.book.line.first():
            keeper = self._queues.keeper(waiter.turn[1])
            if keeper in self.book.held:
                yield task_key, waiter.lane, keeper

    def stand(self, lane: str, groups: Groups, file: str) -> None:
        """Let a task stand in line, firmly, until the end of the next step."""
        task_key = key_in(file)
        for demand in _demands(groups):
            self.book.line.join(task_key, Waiter(turn_of(file), demand, lane))
            self._gone.pop(task_key, None)
            self._called.pop(task_key, None)
            self._firm.add(task_key)
            self.book.line.firm.add(task_key)
            if not self._queues.keeper(file):
                self._shown.add(task_key)

    def choose(self, file: str, now: float) -> None:
        """Note that a task is about to go to ready/. now: monotonic, s."""
        if self._queues.keeps(task_key := key_in(file)):
            self.stood[task_key] = now

    def aside(self) -> list[tuple[str, str, int]]:
        """The queues that are set aside: the head of each, its keeper, and how many tasks are in it at most."""
        return list(self._queues.aside())

    def firm(self) -> list[tuple[str, str, int]]:
        """The tasks in line that wait for no lock, but for something else that others have; as in `aside`."""
        waiters = (self.book.line.get(task_key) for task_key in self._shown)
        return [(waiter.turn[1], "", 1) for waiter in waiters if waiter is not None]

    def line_up(self, lane: str, groups: Groups, file: str, wait: Wait) -> tuple[str, ...]:
        """Set a queue aside behind the one that keeps it back, and let its head, this file, stand in line. Returns
        the gate when that is enough for this step: it is not to be asked again in it.
        """
        task_key = key_in(file)
        self._called.pop(task_key, None)
        self._shown.discard(task_key)
        for demand in _demands(groups):
            self.book.line.join(task_key, Waiter(turn_of(file), demand, lane))
        self._queues.set_aside(lane, groups, file, wait.behind)
        self._aside += 1
        return () if self._aside < SET_ASIDE else (wait.gate,)

    def leave(self, task_key: str) -> None:
        """Note that a task stands in line no more: the next step asks about those behind it, and about the one that
        is in front of its queue now.
        """
        self._called.pop(task_key, None)
        self._shown.discard(task_key)
        waiter = self.book.line.get(task_key)
        if waiter is not None and self.book.line.leave(task_key):
            self._gone[task_key] = None
            self._queues.without(waiter.turn[1])

    def settle(self) -> None:
        """End a step: a task that was called, and not asked about for want of room, stands in line no more. The same
        holds for one that waits for more than locks, and for which nothing is kept back now.
        """
        if self._aside < SET_ASIDE:
            for task_key in list(self._called):
                self.leave(task_key)
            self._called.clear()
        line = self.book.line
        loose, line.firm, self._firm = line.firm - self._firm, self._firm, set()
        for task_key in sorted(loose):
            waiter = line.get(task_key)
            if task_key in self._shown:
                self.leave(task_key)
            elif waiter is not None and waiter.lane in line.shut:
                self._call(task_key)

    def _call(self, keeper: str) -> None:
        self._called.update(dict.fromkeys(map(key_in, self._queues.free(keeper))))


def in_line(groups: Groups) -> bool:
    """Whether tasks of these groups stand in line."""
    return bool(_demands(groups))


def _demands(groups: Groups) -> list[Demand]:
    """What the tasks of these groups lock: the group of the gate `locks` is its demand."""
    return [group for _, group in groups if isinstance(group, Demand)]
