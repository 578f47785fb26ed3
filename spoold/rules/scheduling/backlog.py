"""The waiting tasks, in order, and when the gates are asked again.

Law: no call costs more than the change it handles. The wakes of a gate say when it is asked: when a time that it
named comes, when one of the task's parents ends, when a request about it comes or goes, or in every step that has
room, and then once for a whole group. Wakes only say *when* to ask; the answer always comes from `gates`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Any

from spoold.protocol.lanes import kind_in
from spoold.protocol.names import TaskName, key, key_in, order_in
from spoold.protocol.result import Code
from spoold.rules.cluster.pool_clock import LOOK_AGAIN_S, Now, in_s
from spoold.rules.gates import lock_gate, registry
from spoold.rules.gates.dependency_gates import Graph
from spoold.rules.gates.facts import NO_CONDITIONS, NO_TYPE, OVER, Facts, Parent, TypeFacts
from spoold.rules.gates.gate import Pass, Refuse, Verdict, Wait
from spoold.rules.gates.lock_holders import Book, Demand, Turn, Waiter, turn_of
from spoold.rules.gates.registry import Groups
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.scheduling.fair_shares import Turns
from spoold.rules.scheduling.queues import Queues, Standing, urgency_of
from spoold.rules.scheduling.waiting_task import Entry, Parked

# Runs a judgement of the task with this key. If that ends in a fault of spoold: its words, and whether it lasts.
Contain = Callable[[str, Callable[[], None]], tuple[str, bool] | None]
FAULT = "fault"
BREATHE_EVERY = 10_000  # tasks of a long backlog, after which a leader renews its token


def loud(_: str, judge: Callable[[], None]) -> None:
    """Judge a task, and contain nothing."""
    judge()


class Backlog:
    """All waiting tasks of a spool, as the leader knows them. Not a decision of its own: an index.

    gathered: by the leader once a step, for the facts; parked: what waits for a request; locks: who waits for whom.
    turns: of the shares.
    contain: a task that spoold cannot judge is refused, and keeps no other from being judged.
    """

    def __init__(self, parent: Callable[[str], Parent]) -> None:
        self._parent, self._entries = parent, dict[str, Entry]()
        self.turns = Turns()
        self._graph, self._queues = Graph(), Queues(self._stands, in_line, turn_of, self._share, self.turns)
        self._timers: list[tuple[float, str]] = []
        self._refused, self._rings = dict[str, Refuse](), dict[str, tuple[str, ...]]()
        # The groups that a gate keeps waiting in this step, and when (monotonic, s) it said that it may open.
        self._shut: set[str | tuple[str, Hashable]] = set()
        self._opens: float | None = None
        self._gathered, self._typed = dict[str, Any](), frozenset[str]()
        self.locks, self.parked, self._per_lane = Locking(self._queues), Parked(), Counter[str]()
        self._children = Counter[str]()
        self.contain: Contain = loud

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task_key: str) -> bool:
        return task_key in self._entries

    @property
    def graph(self) -> Graph:
        """Which waiting tasks wait for which others, and for which batches; for reading."""
        return self._graph

    @property
    def gathered(self) -> Mapping[str, Any]:
        """What the gates bring to the facts."""
        return self._gathered

    @gathered.setter
    def gathered(self, found: Mapping[str, Any]) -> None:
        self._gathered, self._typed = dict(found), registry.typed(found)

    def draws(self, kind: str) -> bool:
        """Whether a gate looks at every task of the type, also at those that ask for nothing."""
        return kind in self._typed

    def kept(self, gate: str) -> Iterator[Entry]:
        """The most urgent task of each queue that a gate asked in every step keeps waiting in this step."""
        shut = {group for group in self._shut if group[0] == gate}
        passed = self._queues.passed() if shut else ()
        return (self._entries[key_in(file)] for file, (_, groups) in passed if not shut.isdisjoint(groups))

    def items(self) -> Iterator[tuple[str, Entry]]:
        """All waiting tasks by key."""
        return iter(self._entries.items())

    def get(self, task_key: str) -> Entry | None:
        """The waiting task with that key."""
        return self._entries.get(task_key)

    def lanes(self) -> list[str]:
        """Lanes in which something may be runnable, in a settled order."""
        return self._queues.lanes()

    def any_lane(self, wanted: Callable[[str], bool]) -> bool:
        """Whether something may be runnable in such a lane. Asks for each lane, in no order, until one is found."""
        return self._queues.any_lane(wanted)

    def per_lane(self) -> dict[str, int]:
        """How many tasks wait in each lane."""
        return {lane: count for lane, count in sorted(self._per_lane.items()) if count}

    def add(self, entry: Entry, now: Now) -> str:
        """Take a task in; return its key. If it closes cycles, all their members are refused, naming one of them."""
        task_key = key_in(entry.file)
        self.remove(task_key)
        self._entries[task_key] = entry
        self.turns.came(entry.share)
        self._per_lane[entry.lane] += 1
        self._children[entry.lane] += entry.conditions.child
        conditions = entry.conditions
        watched = registry.OF_EVERY_TASK or (self._typed and kind_in(entry.lane) in self._typed)
        plain = conditions is NO_CONDITIONS and not entry.rest_until and not watched
        if plain and not self.parked.names(task_key):
            entry.runnable = True  # as the gates would answer; true of nearly every task of a huge backlog
            self.put_back(entry)
            return task_key
        entry.groups = registry.groups(conditions, self._facts(task_key, entry, now))
        parents = {key(p) for p in registry.parents_of(conditions)}
        if parents:
            self._graph.add(task_key, parents)
            for parent in parents:
                self._graph.settle(task_key, parent, ended=self._parent(parent) in OVER)
            self._content(task_key, entry)
            cycle = self._graph.cycle(task_key)
            if cycle:
                self._close_ring(cycle, now)
                return task_key
        self._judge(task_key, entry, now)
        return task_key

    def regroup(self, now: Now, breathe: Callable[[], None] = lambda: None) -> None:
        """Group all tasks anew, since what the gates group by has changed. breathe: called now and then."""
        for number, (task_key, entry) in enumerate(self._entries.items(), 1):
            groups = registry.groups(entry.conditions, self._facts(task_key, entry, now))
            if groups != entry.groups:
                entry.groups = groups
                if entry.runnable:
                    self.put_back(entry)
            if not number % BREATHE_EVERY:
                breathe()

    def remove(self, task_key: str) -> Entry | None:
        """Remove a task that no longer waits. Heaps and timers forget it when they come to it."""
        entry = self._entries.pop(task_key, None)
        if entry is not None:
            self._leaves(entry)
            self._per_lane[entry.lane] -= 1
            self._children[entry.lane] -= entry.conditions.child
            self.locks.leave(task_key)
            self._refused.pop(task_key, None)
            self._rings.pop(task_key, None)
            self.parked.leave(task_key)
            if task_key in self._graph:
                self._graph.remove(task_key)
        return entry

    def _leaves(self, entry: Entry) -> None:
        turns, active = self.turns, self.turns.active
        turns.left(entry.share, entry.file)
        if active and not turns.active:
            self._queues.refresh()

    def join(self, task_key: str, share: str) -> None:
        """Note of which share a waiting task is; it was of another one, or of none that is known."""
        entry = self._entries.get(task_key)
        if entry is None or entry.share == share:
            return
        self.locks.leave(task_key)
        self.turns.came(share)  # first: while two wait, all are in the order of turns
        self._leaves(entry)
        entry.share = share
        if entry.runnable:
            self.put_back(entry)

    def starts(self, entry: Entry) -> None:
        """Note that a waiting task goes to ready/: it was the turn of its share."""
        self.turns.start(entry.share)

    def parent_changed(self, parent_key: str, now: Now) -> None:
        """Ask anew for the children of a task that ended, or came to life again, and for no other task. A child with
        more parents still open goes on waiting when one completes: it costs one question, not one for each parent.
        """
        state = self._parent(parent_key)
        for child in self._graph.children(parent_key):
            entry = self._entries[child]
            self._contained(child, entry, now, partial(self._settle, child, entry, parent_key, state, now))

    def _settle(self, child: str, entry: Entry, parent_key: str, state: Parent, now: Now) -> None:
        waits = self._graph.settle(child, parent_key, ended=state in OVER)
        if state is Parent.FAILED:
            self._content(child, entry)
        if not (waits and state is Parent.COMPLETED):
            self._judge_now(child, entry, now)

    def request(self, task_key: str, requests: tuple[Requested, ...], now: Now) -> None:
        """Take in the requests about a task that stand now; if it waits, ask anew for it, and for no other task."""
        self.parked.see(task_key, requests)
        if task_key in self._entries:
            self._judge(task_key, self._entries[task_key], now)

    def tick(self, now: Now) -> None:
        """Begin a step: ask anew for all tasks whose time has come, and let `lets` ask again."""
        self._shut.clear()
        self._opens = None
        self.locks.begin_step(now.monotonic)
        while self._timers and self._timers[0][0] <= now.monotonic:
            _, task_key = heapq.heappop(self._timers)
            entry = self._entries.get(task_key)
            if entry is not None and not (entry.runnable and next(registry.moments(entry.conditions), None) is None):
                self._judge(task_key, entry, now)

    def next_due(self) -> float | None:
        """The moment (monotonic, s) of the next tick that has something to do."""
        moments = (self._opens, self.locks.next_due(), *(due for due, _ in self._timers[:1]))
        dues = [moment for moment in moments if moment is not None]
        return min(dues, default=None)

    @property
    def refusals(self) -> int:
        """The number of tasks in `refused`."""
        return len(self._refused)

    def refused(self) -> list[tuple[Entry, Refuse]]:
        """Tasks that can never run, in a settled order; they stay until removed."""
        return [(self._entries[k], self._refused[k]) for k in sorted(self._refused)]

    def best(self, lane: str) -> Entry | None:
        """The task that goes first of those of a lane that may run and that no gate held when last asked; it stays in
        its queue.
        """
        found = self._queues.head(lane, self._shut)
        return None if found is None else self._entries[key_in(found[0])]

    def urgency(self, lane: str) -> str | None:
        """The urgency of the queue of `best`, as text that sorts: with it the one in front goes."""
        found = self._queues.head(lane, self._shut)
        return None if found is None else found[1]

    def take(self, lane: str) -> Entry | None:
        """Take this task off its queue: the caller removes it, or puts it back."""
        file = self._queues.take(lane, self._shut)
        return None if file is None else self._entries[key_in(file)]

    def put_back(self, entry: Entry) -> None:
        """Put back a task from `take` that still waits."""
        self._queues.push(entry.lane, entry.groups, entry.file)

    def lets(
        self, entry: Entry, facts: TypeFacts, now: Now, clear: Callable[[Entry, Verdict], Verdict] | None = None
    ) -> bool:
        """Whether the gates that are asked in every step let a runnable task go; facts: those of its type; clear:
        has others make way, and returns what the gates say then.

        A gate that answers Wait is not asked again in this step for the group, and one that names who keeps the task
        back not before that one is gone; a refusal ends this task alone.
        """
        if not entry.groups or not self._shut.isdisjoint(entry.groups):
            return not entry.groups
        task_key, said = key_in(entry.file), list[Verdict]()

        def judge() -> None:
            verdict = self.ask(entry, facts, now)
            said.append(clear(entry, verdict) if clear is not None and isinstance(verdict, Wait) else verdict)

        if not self._contained(task_key, entry, now, judge):
            return False
        verdict = said[0]
        if isinstance(verdict, Wait) and verdict.behind:
            self._shut.update(self.locks.line_up(entry.lane, entry.groups, entry.file, verdict))
            return False
        if isinstance(verdict, Wait):
            self._shut.update([pair for pair in entry.groups if pair[0] == verdict.gate] or entry.groups)
            self.look_again(verdict, now)
        if not isinstance(verdict, Pass):
            self.locks.leave(task_key)
        self.refuse(entry, verdict)
        return isinstance(verdict, Pass)

    def waits(self, entry: Entry, facts: TypeFacts, now: Now, passed: str = "") -> list[Wait] | None:
        """What each of the gates that are asked in every step keeps from a runnable task; None if it may never run.

        passed: a gate that is not asked.
        """
        groups = tuple(group for group in entry.groups if group[0] != passed)
        found = list[Verdict]()

        def judge() -> None:
            found.extend(
                registry.judge_each(groups, entry.conditions, self._facts(key_in(entry.file), entry, now, facts))
            )

        if not self._contained(key_in(entry.file), entry, now, judge) or any(isinstance(v, Refuse) for v in found):
            return None
        return [verdict for verdict in found if isinstance(verdict, Wait)]

    def ask(self, entry: Entry, facts: TypeFacts, now: Now) -> Verdict:
        """What the gates that are asked in every step say of a runnable task; facts: those of its type."""
        return registry.judge_step(entry.groups, entry.conditions, self._facts(key_in(entry.file), entry, now, facts))

    def holds(self, entry: Entry, gate: str, one: Standing, now: Now) -> bool:
        """Whether an active task holds what a waiting one wants of this gate."""
        facts = self._facts(key_in(entry.file), entry, now)
        return registry.holds(gate, (entry.conditions, facts), (one.conditions, self._facts_of(one, now)))

    def frees(self, entry: Entry, gate: str, one: Standing, now: Now) -> bool:
        """Whether a ready task holds that, and may have to make way for the waiting one."""
        if not self.holds(entry, gate, one, now):
            return False
        return gate != lock_gate.NAME or self.locks.passes(entry.file, one.task, now.monotonic)

    def of_children(self) -> list[str]:
        """The lanes in which tasks wait that other tasks submitted."""
        return [lane for lane, count in self._children.items() if count]

    def unbook(self, one: Standing, now: Now) -> None:
        """Have the gates count that a ready task holds nothing more."""
        registry.unbook(one.conditions, self._facts_of(one, now))

    def rebook(self, one: Standing, now: Now) -> None:
        """Undo `unbook`."""
        registry.rebook(one.conditions, self._facts_of(one, now))

    def _facts_of(self, one: Standing, now: Now) -> Facts:
        return Facts(now.wall, self._parent, key=key(one.task.id), kind=kind_in(one.lane), more=self.gathered)

    def keep(self, entry: Entry, facts: TypeFacts, now: Now) -> None:
        """Count what a waiting task needs, but for locks, as if it had it, until `let_go`."""
        registry.book(_kept(entry), entry.conditions, self._facts(key_in(entry.file), entry, now, facts))

    def let_go(self, entry: Entry, facts: TypeFacts, now: Now) -> None:
        """Undo `keep`."""
        facts_of = self._facts(key_in(entry.file), entry, now, facts)
        registry.unbook(entry.conditions, facts_of, _kept(entry))

    def lets_as(self, entry: Entry, kind: str, facts: TypeFacts, now: Now) -> bool:
        """As `lets`, if a runnable task ran as another type, whose facts these are. A refusal ends nothing then."""
        about, groups = self._under(entry, kind, facts, now)
        if not groups or not self._shut.isdisjoint(groups):
            return not groups
        said = list[Verdict]()

        def judge() -> None:
            said.append(registry.judge_step(groups, entry.conditions, about))

        if not self._contained(key_in(entry.file), entry, now, judge):
            return False
        if isinstance(said[0], Wait) and said[0].behind:  # locks are the same under every type
            self._shut.update(self.locks.line_up(entry.lane, entry.groups, entry.file, said[0]))
        self.look_again(said[0], now)
        return isinstance(said[0], Pass)

    def _under(self, entry: Entry, kind: str, facts: TypeFacts, now: Now) -> tuple[Facts, Groups]:
        """The facts and the groups of a task that goes to ready/ as this type."""
        about = self._facts(key_in(entry.file), entry, now, facts)
        if kind == about.kind:
            return about, entry.groups
        about = replace(about, kind=kind)
        return about, registry.groups(entry.conditions, about)

    def book(self, entry: Entry, facts: TypeFacts, now: Now, kind: str) -> None:
        """Have the gates count a task that goes to ready/ as this type; facts: those of that."""
        if not entry.groups and kind == kind_in(entry.lane):
            return
        about, groups = self._under(entry, kind, facts, now)
        if groups:
            registry.book(groups, entry.conditions, about)

    def would_let(self, entry: Entry, facts: TypeFacts, now: Now) -> bool:
        """Whether every gate passes for a task that asks for nothing and is not in the backlog."""
        if not registry.OF_EVERY_TASK and not self.parked.names(key_in(entry.file)):
            return True
        return isinstance(registry.judge(entry.conditions, self._facts(key_in(entry.file), entry, now, facts)), Pass)

    def refuse(self, entry: Entry, verdict: Verdict) -> None:
        """Mark a runnable task that a gate refuses now as never runnable; any other verdict changes nothing."""
        if isinstance(verdict, Refuse):
            entry.runnable = False
            self._refused[key_in(entry.file)] = verdict

    def look_again(self, verdict: Verdict, now: Now) -> None:
        """Note the moment that a gate asked in every step may have named: then there must be a step."""
        if isinstance(verdict, Wait) and verdict.until is not None:
            due = now.monotonic + in_s(verdict.until, now)
            self._opens = due if self._opens is None else min(due, self._opens)

    def verdict(self, entry: Entry, now: Now) -> Wait | Refuse | None:
        """The verdict of the gates that are asked for this task alone; None if they all pass."""
        verdict = registry.judge_arrived(entry.conditions, self._facts(key_in(entry.file), entry, now))
        return None if isinstance(verdict, Pass) else verdict

    def urgency_of(self, entry: Entry) -> str:
        """The urgency of one task, as text that sorts, as if it were in front of its share."""
        return urgency_of(self.turns, entry.share, entry.file, self.turns.now)

    def _share(self, file: str) -> str:
        entry = self._entries.get(key_in(file))
        return "" if entry is None else entry.share

    def _stands(self, file: str, lane: str, groups: Groups) -> bool:
        entry = self._entries.get(key_in(file))
        if entry is None or not entry.runnable:
            return False
        return entry.file == file and entry.lane == lane and entry.groups == groups

    def _content(self, task_key: str, entry: Entry) -> None:
        """Once one `after_failed` task has failed, the end of the others counts for nothing."""
        conditions = entry.conditions
        if any(self._parent(p) is Parent.FAILED for p in conditions.needs_failed):
            others = {key(p) for p in (*conditions.needs, *conditions.needs_ended)}
            self._graph.settle_all(task_key, {key(p) for p in conditions.needs_failed} - others)

    def _close_ring(self, cycle: list[str], now: Now) -> None:
        """Members keep the cycle for as long as they wait: one that fails must not hide the reason from the next."""
        ids = tuple(self._entries[member].name.id for member in cycle)
        for member in self._graph.knot(cycle[0]):
            self._rings[member] = ids
            self._judge(member, self._entries[member], now)

    def _facts(self, task_key: str, entry: Entry, now: Now, facts: TypeFacts = NO_TYPE) -> Facts:
        rest_s = entry.rest_until - now.monotonic if entry.rest_until else 0.0
        ring, about = self._rings.get(task_key, ()), self.parked.requested.get(task_key, ())
        seen = (facts, self.gathered, order_in(entry.file), about, entry.file)
        return Facts(now.wall, self._parent, rest_s, task_key, kind_in(entry.lane), ring, *seen)

    def _judge(self, task_key: str, entry: Entry, now: Now) -> None:
        self._contained(task_key, entry, now, partial(self._judge_now, task_key, entry, now))

    def _contained(self, task_key: str, entry: Entry, now: Now, judge: Callable[[], None]) -> bool:
        """Judge a task; True when that is done. One that cannot be judged never runs, or is asked about again."""
        fault = self.contain(task_key, judge)
        if fault is None:
            return True
        cause, lasts = fault
        entry.runnable = False
        self.locks.leave(task_key)
        if lasts:
            self._refused[task_key] = Refuse(FAULT, Code.INVALID_TASK, cause)
        else:
            heapq.heappush(self._timers, (now.monotonic + LOOK_AGAIN_S, task_key))
        return False

    def _judge_now(self, task_key: str, entry: Entry, now: Now) -> None:
        verdict = self.verdict(entry, now)
        was, entry.runnable = entry.runnable, verdict is None
        if verdict is not None:
            self.locks.leave(task_key)
        unnamed = self.parked.judged(task_key, entry.file, verdict)
        if isinstance(verdict, Refuse):
            self._refused[task_key] = verdict
            return
        self._refused.pop(task_key, None)
        if verdict is None and not was:
            self.put_back(entry)
        upcoming = list(registry.moments(entry.conditions))
        upcoming += [] if verdict is None or verdict.until is None else [verdict.until]
        if upcoming or unnamed:
            due_s = in_s(min(upcoming), now) if upcoming else LOOK_AGAIN_S
            heapq.heappush(self._timers, (now.monotonic + due_s, task_key))


def _kept(entry: Entry) -> Groups:
    """The groups of the gates at which others find something booked; for locks there is the line."""
    return tuple(group for group in entry.groups if group[0] != lock_gate.NAME)


# Who waits behind whom: the queues that the gate `locks` sets aside, and when they are looked at again.


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
        self.book.place = self._place
        self.strangers: set[str] = set()
        self.stood: dict[str, float] = {}
        self._firm: set[str] = set()
        self._shown: set[str] = set()
        self._late: set[str] = set()
        self._queues = queues
        self._gone: dict[str, None] = {}
        self._called: dict[str, None] = {}
        self._aside = 0

    def _place(self, file: str) -> Turn:
        place = self._queues.turns.place(file)
        return turn_of(file) if place is None else (place, file)

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
            self.book.line.join(task_key, Waiter(self._place(file), demand, lane))
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
            self.book.line.join(task_key, Waiter(self._place(file), demand, lane))
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
