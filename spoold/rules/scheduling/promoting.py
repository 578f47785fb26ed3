"""The tasks that go to ready/ next, and those that go back: urgent first, within the limits, a window for each lane.

Law: ready/ holds a window per lane, however long the backlog. The gates that are asked in every step are asked here,
for the head of a queue alone, and only if there is room for it. A task that a closed limit of its type holds may go
as another type, if all gates of that one are open and nobody has to make way.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from spoold.protocol.lanes import kind_in
from spoold.protocol.name_parts import rank_in
from spoold.protocol.names import TaskName
from spoold.rules.gates.facts import NO_TYPE, TypeFacts
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.verdicts import Pass, Verdict, Wait
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.entry import Entry
from spoold.rules.scheduling.instead import Instead, goes_back, is_closed
from spoold.rules.scheduling.keeping_back import KeepingBack
from spoold.rules.scheduling.moment import Now
from spoold.rules.scheduling.resources import Resources, Uses
from spoold.rules.scheduling.yielding import Standing, Way, passes

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
            wanted |= facts.stock.lacking(facts.uses)
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
