"""The tasks that go to ready/ next, and those that go back: urgent first, within the limits, a window for each lane.

Law: ready/ holds a window per lane, however long the backlog. The gates that are asked in every step are asked here,
for the head of a queue alone, and only if there is room for it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spoold.protocol.lanes import kind_in
from spoold.protocol.names import TaskName
from spoold.rules.gates.facts import NO_TYPE, TypeFacts
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.verdicts import Pass, Wait
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.entry import Entry
from spoold.rules.scheduling.moment import Now

# The gates whose Wait is for units that others use.
_COUNTED = frozenset({"limit", "rate"})


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane in ready/: its type and the ranks of the tasks in it."""

    kind: str
    ranks: tuple[int, ...]


def promotions(
    backlog: Backlog, lanes: Mapping[str, LaneView], facts: Mapping[str, TypeFacts], window: int, now: Now
) -> list[Entry]:
    """The waiting tasks that go to ready/ now, most urgent first over all lanes. facts: by lane; all share one
    stock.

    A lane is filled up to `window`; a task more urgent than the least urgent one there still goes in, up to twice the
    window, so that a full lane never makes an urgent task wait. A limit holds over all lanes, and no task takes units
    for which an earlier one waits. The tasks named leave the lane's order: the caller removes each, or puts it back.
    """
    chosen: list[Entry] = []
    stock = next(iter(facts.values()), NO_TYPE).stock
    used, wanted = Counter(stock.used), set(stock.wanted)
    stock = replace(stock, used=used, wanted=wanted)
    facts = {lane: replace(own, stock=stock) for lane, own in facts.items()}
    sizes = {lane: len(view.ranks) for lane, view in lanes.items()}
    worst = {lane: max(view.ranks, default=0) for lane, view in lanes.items()}
    heads = [(best.file, lane) for lane in lanes if (best := backlog.best(lane)) is not None]
    heapq.heapify(heads)
    while heads:
        file, lane = heapq.heappop(heads)
        best = backlog.best(lane)
        if best is None or best.file != file:  # a gate that shut meanwhile shut the one that was the best
            heads += [(best.file, lane)] if best is not None else []
            heapq.heapify(heads)
            continue
        kind, entry = lanes[lane].kind, backlog.take(lane)
        assert entry is not None  # it is the best
        fits = sizes[lane] < window or (entry.rank < worst[lane] and sizes[lane] < 2 * window)
        is_open = fits and _is_open(backlog, entry, kind, facts[lane], now, wanted)
        if is_open and backlog.lets(entry, facts[lane], now):
            chosen.append(entry)
            backlog.book(entry, facts[lane], now)
            backlog.locks.choose(entry.file, entry.groups)
            sizes[lane] += 1
            for name, units in facts[lane].uses.items():
                used[name] += units
        elif entry.runnable:
            backlog.put_back(entry)
            if not is_open:
                continue  # the less urgent ones of the lane find no room either
        following = backlog.best(lane)
        if following is not None:
            heapq.heappush(heads, (following.file, lane))
    backlog.locks.settle()
    return chosen


def _is_open(backlog: Backlog, entry: Entry, kind: str, facts: TypeFacts, now: Now, wanted: set[str]) -> bool:
    """Whether the gates of its lane pass; a task that one of them refuses is runnable no more.

    wanted: takes what the task waits for, so that no later one takes it first.
    """
    verdict = judge_type(kind, facts)
    if isinstance(verdict, Wait) and verdict.gate in _COUNTED:
        wanted |= facts.stock.lacking(facts.uses)
    backlog.look_again(verdict, now)
    backlog.refuse(entry, verdict)
    return isinstance(verdict, Pass)


def holdbacks(ready: Mapping[str, list[TaskName]], facts: Mapping[str, TypeFacts]) -> list[tuple[str, TaskName]]:
    """The ready tasks, each with its lane, that go back to waiting/: all of a lane whose gate closed again, and of
    those that use a resource beyond its capacity as many as it takes, the least urgent first.
    """
    back = [
        (lane, task)
        for lane, tasks in ready.items()
        if not isinstance(judge_type(kind_in(lane), facts[lane], ready=True), Pass)
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
    while (best := backlog.best(lane)) is not None and best.rank < worst:
        if backlog.lets(best, facts, now):
            return _least_urgent(ready, len(ready) - window)
    return []


def _least_urgent(ready: list[TaskName], count: int) -> list[TaskName]:
    return sorted(ready, key=lambda name: (name.rank, name.order), reverse=True)[:count]
