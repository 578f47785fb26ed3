"""The tasks that go to ready/ next, and those that go back: urgent first, within the limits, a window for each lane.

Law: ready/ holds a window per lane, however long the backlog. The gates that are asked in every step are asked here,
for the head of a queue alone, and only if there is room for it. A task that a closed limit of its type holds may go
as another type, if all gates of that one are open and nobody has to make way.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from spoold.protocol.lanes import kind_in
from spoold.protocol.names import TaskName, key, order_in, rank_in
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import limit_gates, lock_gate
from spoold.rules.gates.facts import NO_TYPE, TypeFacts
from spoold.rules.gates.gate import Pass, Verdict, Wait
from spoold.rules.gates.registry import books, judge_type
from spoold.rules.gates.resources import CLASS, LIMIT, RATE, TYPE, Resources, Uses
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.fallback_types import Instead, goes_back, is_closed
from spoold.rules.scheduling.queues import Standing, Way, passes
from spoold.rules.scheduling.waiting_task import Entry

# What is kept back for a waiting task that has some of what it needs and lacks the rest.


# Where a task stands among others, by rank and order: what is smaller comes first.
Place = tuple[int, str]
_KEPT_BACK = (TYPE, LIMIT, RATE)


@dataclass(slots=True)
class KeepingBack:
    """What is kept back in one step. used: takes the units that are kept; wanted: what no later task may take.

    uses: what a task of a lane uses. aside: the tasks behind holders, by urgency, each with its facts and holder.
    awaited: what those lack for which something is kept: resources, holders, gates. One task waits for each.
    latest: of the active tasks, by resource, the place of the one that comes last.
    """

    backlog: Backlog
    now: Now
    used: Counter[str]
    wanted: set[str]
    uses: Callable[[str], Uses]
    way: Way
    _aside: dict[str, tuple[Entry, TypeFacts, str]] = field(default_factory=dict)
    _awaited: set[str] = field(default_factory=set)
    _booked: list[tuple[Entry, TypeFacts]] = field(default_factory=list)
    _gathered: bool = False
    _active: dict[str, Standing] = field(default_factory=dict)
    _latest: dict[str, Place] = field(default_factory=dict)

    def behind(self, facts: Mapping[str, TypeFacts]) -> Iterable[str]:
        """The urgency of each task in line that is not asked about, since a holder keeps it back. facts: by lane."""
        for task_key, lane, keeper in self.backlog.locks.behind():
            entry = self.backlog.get(task_key)
            if entry is not None and lane in facts and _has_more(entry, facts[lane], set()):
                self._aside[self.backlog.urgency_of(entry)] = entry, facts[lane], keeper
        return self._aside

    def go_on(self, urgency: str) -> None:
        """Weigh one of those, when it would be its turn."""
        entry, facts, keeper = self._aside[urgency]
        self.weigh(entry, entry.rank, facts, judge_type(kind_in(entry.lane), facts), keeper)

    def weigh(self, entry: Entry, rank: int, facts: TypeFacts, said: Verdict, keeper: str = "") -> None:
        """Keep back what a task has, if all that it lacks comes from later ones.

        rank: with which it goes; said: by the gates of its type; keeper: the holder of its locks behind which it is
        set aside.
        """
        lacks = _lacks(said, facts)
        if lacks is None or not entry.runnable or not _has_more(entry, facts, lacks):
            return
        # Where shares take turns, all active ones of its rank have had theirs.
        place = rank, "" if self.backlog.turns.active else order_in(entry.file)
        if not all(self._comes(name, place, facts) for name in lacks):
            return
        waits = self._waits(entry, facts, keeper) if keeper not in self._awaited else None
        awaits = {*lacks, *(wait.behind or wait.gate for wait in waits or ())}
        if waits is None or not awaits or not awaits.isdisjoint(self.wanted | self._awaited):
            return
        sources = {self._source(entry, wait, place) for wait in waits}
        if _Source.NONE in sources:
            return
        self._awaited |= awaits
        counted = {name for name in lacks if not name.startswith(CLASS)}
        self.wanted |= counted
        for name in counted:
            self.way.wanted.setdefault(name, (entry.file, facts.uses[name]))
        self.backlog.locks.stand(entry.lane, entry.groups, entry.file)
        self._keep(entry, facts, lacks, self._of_children() if _Source.WAITS in sources else None)

    def settle(self) -> None:
        """End the step: each for which something is kept is weighed anew in the next one."""
        for entry, facts in self._booked:
            self.backlog.let_go(entry, facts, self.now)

    def _keep(self, entry: Entry, facts: TypeFacts, lacks: set[str], needed: Set[str] | None) -> None:
        """Count as used what the task does not lack. needed: what those may need that others wait for."""
        for name, units in facts.uses.items():
            if name not in lacks and name not in (needed or ()) and _is_scarce(name, facts):
                self.used[name] += units
                self.way.kept.setdefault(name, []).append((entry.file, units))
        if not needed:
            self.backlog.keep(entry, facts, self.now)
            self._booked.append((entry, facts))

    def _of_children(self) -> Set[str]:
        """The resources that waiting tasks use which other tasks submitted."""
        return {name for lane in self.backlog.of_children() for name in self.uses(lane)}

    def _comes(self, name: str, place: Place, facts: TypeFacts) -> bool:
        """Whether a later task has some of a resource that is short. One that waits for others has lent it."""
        self._gather()
        shares = facts.stock.shares
        if name.startswith(CLASS) and shares is not None and shares.borrows(name.removeprefix(CLASS)):
            return any(there > place for each, there in self._latest.items() if each.startswith(CLASS))
        return self._latest.get(name, place) > place

    def _waits(self, entry: Entry, facts: TypeFacts, keeper: str) -> list[Wait] | None:
        """What the task's own gates keep from it; None if it may never run."""
        if not entry.groups:
            return []
        self._gather()
        waits = self.backlog.waits(entry, facts, self.now, passed=lock_gate.NAME if keeper else "")
        return waits if waits is None or not keeper else [*waits, Wait(lock_gate.NAME, "", behind=keeper)]

    def _source(self, entry: Entry, wait: Wait, place: Place) -> _Source:
        """Who has what a gate keeps from the task."""
        if wait.behind:  # no active one, where that task stands in line itself
            holders = [one for one in [self._active.get(wait.behind)] if one is not None]
        else:
            holders = [one for one in self._active.values() if self.backlog.holds(entry, wait.gate, one, self.now)]
            mine = Standing(entry.name, entry.lane, entry.conditions)
            if not holders and self.backlog.holds(entry, wait.gate, mine, self.now):
                return _Source.ENDS  # the records of those that had it were not read yet
        later = {one.waits for one in holders if _place(one) > place and not one.idle}
        return _Source.ENDS if False in later else _Source.WAITS if later else _Source.NONE

    def _gather(self) -> None:
        """Look at the active tasks, once a step, and only if it matters."""
        if self._gathered:
            return
        self._gathered = True
        self._active = {key(one.task.id): one for one in (*self.way.ready(), *self.way.running())}
        for one in self._active.values():
            for name in self.uses(one.lane) if not one.waits and not one.idle else ():
                self._latest[name] = max(self._latest.get(name, _place(one)), _place(one))


class _Source(Enum):
    """Who has what a task lacks: later tasks that end by themselves, or only such as wait for others; or nobody."""

    ENDS = "ends"
    WAITS = "waits"
    NONE = "none"


def _place(one: Standing) -> Place:
    return one.task.rank, one.task.order


def _has_more(entry: Entry, facts: TypeFacts, lacks: set[str]) -> bool:
    """Whether the task needs anything else that others may take; what it lacks of budgets they may, too."""
    if any(lacks or (name != lock_gate.NAME and books(name)) for name, _ in entry.groups):
        return True
    return any(_is_scarce(name, facts) for name in facts.uses if name not in lacks)


def _is_scarce(name: str, facts: TypeFacts) -> bool:
    """Whether it may be kept: there is so much of it, and it is no turn to try something."""
    if name.startswith(CLASS):
        return facts.stock.shares is not None
    return name in facts.stock.capacity and name.startswith(_KEPT_BACK)


def _lacks(said: Verdict, facts: TypeFacts) -> set[str] | None:
    """The resources of which a task of the lane has too little; None if it waits for anything else."""
    if isinstance(said, Pass):
        return set()
    if not isinstance(said, Wait) or said.gate not in (limit_gates.LIMIT_GATE.name, limit_gates.CLASS_GATE.name):
        return None
    short = {name for name, units in facts.uses.items() if facts.stock.short_of({name: units}, _KEPT_BACK)}
    if short != facts.stock.lacking(facts.uses) or any(name.startswith(RATE) for name in short):
        return None  # it wants more than there is; or time brings it
    if not isinstance(limit_gates.judge_class("", facts), Pass):
        short |= {name for name in facts.uses if name.startswith(CLASS)}
    return short


# The gates whose Wait is for units that others use, and those for which ready tasks may make way.
_COUNTED = frozenset({"limit", "rate"})
_FREED = _COUNTED | {"quota", "breaker", "class"}


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane in ready/: its type and the ranks of the tasks in it."""

    kind: str
    ranks: tuple[int, ...]


def promotions(
    backlog: Backlog,
    lanes: Mapping[str, LaneView],
    facts: Mapping[str, TypeFacts],
    window: int,
    now: Now,
    way: Way | None = None,
    uses: Callable[[str], Uses] = lambda lane: {},
    instead: Instead | None = None,
) -> list[Entry]:
    """The waiting tasks that go to ready/ now, most urgent first over all lanes, each with the urgency of its queue.

    facts: by lane; all share one stock. way: takes which ready tasks make way for them; uses: what a task of a lane
    uses; instead: takes which of them go to the lane of another type, where lanes and facts have that one.

    A lane is filled up to `window`; a task more urgent than the least urgent one there still goes in, up to twice the
    window, so that a full lane never makes an urgent task wait. A limit holds over all lanes, and no task takes units
    for which an earlier one waits, or that are kept back for it. The tasks named leave the lane's order: the caller
    removes each, or puts it back.
    """
    chosen: list[Entry] = []
    stock = next(iter(facts.values()), NO_TYPE).stock
    used, wanted = Counter(stock.used), set(stock.wanted)
    stock = replace(stock, used=used, wanted=wanted)
    facts = {lane: replace(own, stock=stock) for lane, own in facts.items()}
    sizes = {lane: len(view.ranks) for lane, view in lanes.items()}
    worst = {lane: max(view.ranks, default=0) for lane, view in lanes.items()}

    def room(lane: str, rank: int) -> bool:
        return sizes[lane] < window or (rank < worst[lane] and sizes[lane] < 2 * window)

    keeping = KeepingBack(backlog, now, used, wanted, uses, way or Way())
    count = _Count(backlog, now, used, uses, keeping.way, keeping)
    elsewhere = _Elsewhere(backlog, now, lanes, facts, room, instead or Instead())
    heads = [(urgency, lane) for lane in lanes if (urgency := backlog.urgency(lane)) is not None]
    heads += [(file, "") for file in keeping.behind(facts)]
    heapq.heapify(heads)
    while heads:
        file, lane = heapq.heappop(heads)
        if not lane:
            keeping.go_on(file)  # it is not asked about, and keeps what it has from less urgent ones
            continue
        urgency = backlog.urgency(lane)
        if urgency != file:  # a gate that shut meanwhile shut the one that was the best
            heads += [(urgency, lane)] if urgency is not None else []
            heapq.heapify(heads)
            continue
        kind, entry, rank = lanes[lane].kind, backlog.take(lane), rank_in(file)
        assert entry is not None  # it is the best
        fits = room(lane, rank)
        is_open = fits and count.goes(entry, rank, kind, facts[lane], wanted)
        into = lane if is_open else elsewhere.lane_for(entry, rank, kind, lane)
        if into is not None:
            chosen.append(entry)
            backlog.book(entry, facts[into], now, lanes[into].kind)
            backlog.locks.choose(entry.file, now.monotonic)
            backlog.starts(entry)
            sizes[into] += 1
            for name, units in facts[into].uses.items():
                used[name] += units
        elif entry.runnable:
            backlog.put_back(entry)
            if (not fits or count.shut) and backlog.urgency(lane) == file:
                continue  # the less urgent ones of the lane find no room either
        following = backlog.urgency(lane)
        if following is not None:
            heapq.heappush(heads, (following, lane))
    keeping.settle()
    backlog.locks.settle()
    return chosen


@dataclass(slots=True)
class _Count:
    """What is in use while tasks are chosen. shut: whether a gate of its lane kept the last one back at first."""

    backlog: Backlog
    now: Now
    used: Counter[str]
    uses: Callable[[str], Uses]
    way: Way
    keeping: KeepingBack
    shut: bool = False

    def goes(self, entry: Entry, rank: int, kind: str, facts: TypeFacts, wanted: set[str]) -> bool:
        """Whether all gates pass, once less urgent ready tasks have made way; a task that one of them refuses is
        runnable no more. rank: with which it goes; wanted: takes what the task waits for, so that no later one takes
        it first.
        """

        def of_lane() -> Verdict:
            return judge_type(kind, facts)

        def holds(wait: Wait, one: Standing) -> bool:
            if wait.gate not in _FREED:
                return False
            return wait.gate == "class" or not facts.stock.freeable(facts.uses).isdisjoint(self.uses(one.lane))

        verdict = of_lane()
        cleared = self.way.clear(rank, verdict, of_lane, self._free, holds)
        self.shut = not isinstance(verdict, Pass)
        if passes(cleared) and self.backlog.lets(entry, facts, self.now, partial(self._clear, facts, rank)):
            self.way.settle(
                entry.file, lambda: passes(of_lane()) and self._lets(entry, facts), self._free, self._take
            )
            return True
        self.way.cancel(self._take)
        self.backlog.look_again(verdict, self.now)
        self.backlog.refuse(entry, verdict)
        self.keeping.weigh(entry, rank, facts, verdict)
        if isinstance(verdict, Wait) and verdict.gate in _COUNTED:
            lacking = facts.stock.lacking(facts.uses)
            wanted |= lacking
            for name in lacking:
                self.way.wanted.setdefault(name, (entry.file, facts.uses[name]))
        return False

    def _clear(self, facts: TypeFacts, rank: int, entry: Entry, verdict: Verdict) -> Verdict:
        def holds(wait: Wait, one: Standing) -> bool:
            return self.backlog.frees(entry, wait.gate, one, self.now)

        return self.way.clear(rank, verdict, lambda: self.backlog.ask(entry, facts, self.now), self._free, holds)

    def _lets(self, entry: Entry, facts: TypeFacts) -> bool:
        return not entry.groups or passes(self.backlog.ask(entry, facts, self.now))

    def _free(self, one: Standing) -> None:
        self.used.subtract(self.uses(one.lane))
        self.backlog.unbook(one, self.now)

    def _take(self, one: Standing) -> None:
        self.used.update(self.uses(one.lane))
        self.backlog.rebook(one, self.now)


@dataclass(slots=True)
class _Elsewhere:
    """Finds the lane of another type for tasks that a closed limit of their own holds. room: whether one has any."""

    backlog: Backlog
    now: Now
    lanes: Mapping[str, LaneView]
    facts: Mapping[str, TypeFacts]
    room: Callable[[str, int], bool]
    instead: Instead

    def lane_for(self, entry: Entry, rank: int, kind: str, lane: str) -> str | None:
        """The first lane of its list in which the task may go now; None for none."""
        others = self.instead.others(lane) if entry.runnable else ()
        if not others or not is_closed(kind, self.facts[lane]):
            return None
        for other in others:
            if other in self.lanes and self.room(other, rank) and self._goes(entry, other):
                self.instead.taken[entry.file] = other
                return other
        return None

    def _goes(self, entry: Entry, other: str) -> bool:
        kind, facts = self.lanes[other].kind, self.facts[other]
        return passes(judge_type(kind, facts)) and self.backlog.lets_as(entry, kind, facts, self.now)


def holdbacks(
    ready: Mapping[str, list[TaskName]], facts: Mapping[str, TypeFacts], resources: Resources | None = None
) -> list[tuple[str, TaskName]]:
    """The ready tasks, each with its lane, that go back to waiting/: all of a lane whose gate closed again, or whose
    tasks run as another type while no limit of their own is closed any more, and of those that use a resource beyond
    its capacity as many as it takes, the least urgent first. resources: what lanes use.
    """
    back = [
        (lane, task)
        for lane, tasks in ready.items()
        if not isinstance(judge_type(kind_in(lane), facts[lane], ready=True), Pass)
        or (resources is not None and goes_back(lane, resources, facts[lane].closed))
        for task in tasks
    ]
    over = next(iter(facts.values()), NO_TYPE).stock.over()
    if over:
        closed = {lane for lane, _ in back}
        standing = [(task, lane) for lane, tasks in ready.items() if lane not in closed for task in tasks]
        for lane, _ in back:
            _give_back(over, facts[lane])
        for task, lane in sorted(standing, key=lambda pair: (pair[0].rank, pair[0].order), reverse=True):
            if any(over.get(name, 0) > 0 for name in facts[lane].uses):
                _give_back(over, facts[lane])
                back.append((lane, task))
    return back


def _give_back(over: dict[str, int], facts: TypeFacts) -> None:
    for name, units in facts.uses.items():
        if name in over:
            over[name] -= units


def displaced(
    ready: list[TaskName], backlog: Backlog, lane: str, facts: TypeFacts, window: int, now: Now
) -> list[TaskName]:
    """The tasks of a lane that make room for a more urgent waiting one, once even twice the window is full.

    All tasks beyond the window at once, so that each of many urgent tasks costs no more than one move back.
    """
    if len(ready) < 2 * window:
        return []
    worst = max(task.rank for task in ready)
    while (urgency := backlog.urgency(lane)) is not None and rank_in(urgency) < worst:
        best = backlog.best(lane)
        assert best is not None  # it is of that queue
        if backlog.lets(best, facts, now):
            return _least_urgent(ready, len(ready) - window)
    return []


def _least_urgent(ready: list[TaskName], count: int) -> list[TaskName]:
    return sorted(ready, key=lambda name: (name.rank, name.order), reverse=True)[:count]
