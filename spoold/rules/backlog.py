"""What is waiting, in order, and which of it goes to ready/ next.

Law: no call costs more than the change it handles. A task is judged when it arrives, when one of its parents ends and
when a time it named comes, and at no other moment; ready/ holds a window per lane, however long the backlog.
Triggers only say *when* to ask; the answer always comes from `gates`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from spoold.protocol.name_parts import key_in, rank_in
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.result import Code
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Parent, TypeFacts
from spoold.rules.gates.registry import judge, judge_type
from spoold.rules.gates.verdicts import PASS, Refuse, Wait
from spoold.rules.graph import Graph

# A wall clock can be set under a timer; looking again at least this often (s) bounds what that may cost.
LOOK_AGAIN_S = 300.0
# What remains of a wait can be too short to show on a wall clock held in a float: a timer is never due at once again.
LOOK_AGAIN_MIN_S = 0.001
CYCLE = "cycle"
_ENDED = frozenset({Parent.COMPLETED, Parent.FAILED})


@dataclass(slots=True)
class Entry:
    """One waiting task. rest_until is on the leader's monotonic clock (s), 0 for none.

    file: its name as it stands in waiting/. Of a million tasks nothing more is kept; and names sort by urgency.
    """

    file: str
    lane: str
    conditions: Conditions
    rest_until: float = 0.0
    runnable: bool = False

    @property
    def name(self) -> TaskName:
        """The fields of its name."""
        name = parse_task(self.file)
        assert name is not None
        return name

    @property
    def rank(self) -> int:
        """How urgent it is; a smaller rank is more urgent."""
        return rank_in(self.file)


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks of the leader (s)."""

    monotonic: float
    wall: float


class Backlog:
    """All waiting tasks of a spool, as the leader knows them. Not a decision of its own: an index."""

    def __init__(self, parent: Callable[[str], Parent]) -> None:
        self._parent = parent
        self._entries: dict[str, Entry] = {}
        self._graph = Graph()
        self._heaps: dict[str, list[str]] = {}
        self._timers: list[tuple[float, str]] = []
        self._refused: dict[str, Refuse] = {}
        self._per_lane: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task_key: str) -> bool:
        return task_key in self._entries

    @property
    def awaits(self) -> bool:
        """Whether any task waits for the end of another."""
        return bool(self._graph)

    def items(self) -> Iterator[tuple[str, Entry]]:
        """All waiting tasks by key."""
        return iter(self._entries.items())

    def get(self, task_key: str) -> Entry | None:
        """The waiting task with that key."""
        return self._entries.get(task_key)

    def lanes(self) -> list[str]:
        """Lanes in which something may be runnable, in a settled order."""
        return sorted(lane for lane, heap in self._heaps.items() if heap)

    def per_lane(self) -> dict[str, int]:
        """How many tasks wait in each lane."""
        return {lane: count for lane, count in sorted(self._per_lane.items()) if count}

    def add(self, entry: Entry, now: Now) -> str:
        """Take a task in; returns its key. If it closes dependency cycles, all their members are refused, naming one
        of them.
        """
        task_key = key_in(entry.file)
        self.remove(task_key)
        self._entries[task_key] = entry
        self._per_lane[entry.lane] += 1
        conditions = entry.conditions
        if conditions is NO_CONDITIONS and not entry.rest_until:
            entry.runnable = True  # as the gates would say; nearly every task of a huge backlog is one of these
            self.put_back(entry)
            return task_key
        if conditions.needs or conditions.needs_ended:
            parents = {key(p) for p in (*conditions.needs, *conditions.needs_ended)}
            self._graph.add(task_key, parents)
            for parent in parents:
                self._graph.settle(task_key, parent, ended=self._parent(parent) in _ENDED)
            cycle = self._graph.cycle(task_key)
            if cycle:
                self._refuse_cycle(cycle)
                return task_key
        self._judge(task_key, entry, now)
        return task_key

    def remove(self, task_key: str) -> Entry | None:
        """The task waits no longer. Heaps and timers forget it when they come to it."""
        entry = self._entries.pop(task_key, None)
        if entry is not None:
            self._per_lane[entry.lane] -= 1
            self._refused.pop(task_key, None)
            if task_key in self._graph:
                self._graph.remove(task_key)
        return entry

    def parent_changed(self, parent_key: str, now: Now) -> None:
        """A task ended, or came to life again: ask anew for those that wait for it and for nobody else.

        A child with more parents still open goes on waiting when one completes, so that joining many costs one
        question and not as many as there are parents.
        """
        state = self._parent(parent_key)
        for child in self._graph.children(parent_key):
            waits = self._graph.settle(child, parent_key, ended=state in _ENDED)
            if not (waits and state is Parent.COMPLETED):
                self._judge(child, self._entries[child], now)

    def tick(self, now: Now) -> None:
        """Ask anew for all whose time has come."""
        while self._timers and self._timers[0][0] <= now.monotonic:
            _, task_key = heapq.heappop(self._timers)
            entry = self._entries.get(task_key)
            if entry is not None and not (entry.runnable and entry.conditions.deadline is None):
                self._judge(task_key, entry, now)

    def next_due(self) -> float | None:
        """The moment (monotonic, s) of the next tick that has something to do."""
        return self._timers[0][0] if self._timers else None

    def refused(self) -> list[tuple[Entry, Refuse]]:
        """Tasks that can never run, in a settled order; they stay until removed."""
        return [(self._entries[k], self._refused[k]) for k in sorted(self._refused)]

    def best(self, lane: str) -> Entry | None:
        """The most urgent runnable task of a lane; it stays until removed."""
        heap = self._heaps.get(lane, [])
        while heap:
            entry = self._entries.get(key_in(heap[0]))
            if entry is not None and entry.runnable and entry.lane == lane and entry.file == heap[0]:
                return entry
            heapq.heappop(heap)
        return None

    def take(self, lane: str) -> Entry | None:
        """The most urgent runnable task of a lane, off the lane's order: the caller removes it, or puts it back."""
        entry = self.best(lane)
        if entry is not None:
            heap = self._heaps[lane]
            while heap and heap[0] == entry.file:
                heapq.heappop(heap)  # more than once: a task that came, went and came again stands there twice
        return entry

    def put_back(self, entry: Entry) -> None:
        """A task that `take` gave and that is still waiting."""
        heapq.heappush(self._heaps.setdefault(entry.lane, []), entry.file)

    def verdict(self, entry: Entry, now: Now) -> Wait | Refuse | None:
        """What the gates say of a waiting task; None when they all pass."""
        verdict = judge(entry.conditions, self._facts(entry, now))
        return None if verdict == PASS else verdict  # type: ignore[return-value]

    def _refuse_cycle(self, cycle: list[str]) -> None:
        ids = [self._entries[member].name.id for member in cycle]
        ring = " → ".join([*ids, ids[0]])
        reason = f"dependency cycle: {ring}; take one dependency out of it"
        for member in self._graph.knot(cycle[0]):
            self._refused[member] = Refuse(CYCLE, Code.INVALID_TASK, reason)
            self._entries[member].runnable = False  # one whose parent had failed and is tried again may have been

    def _facts(self, entry: Entry, now: Now) -> Facts:
        rest_s = entry.rest_until - now.monotonic if entry.rest_until else 0.0
        return Facts(now.wall, self._parent, rest_s)

    def _judge(self, task_key: str, entry: Entry, now: Now) -> None:
        if task_key in self._refused and self._refused[task_key].gate == CYCLE:
            return  # one member failing must not hide from the next why
        verdict = self.verdict(entry, now)
        was, entry.runnable = entry.runnable, verdict is None
        if isinstance(verdict, Refuse):
            self._refused[task_key] = verdict
            return
        self._refused.pop(task_key, None)
        if verdict is None and not was:
            self.put_back(entry)
        moments = [entry.conditions.deadline]
        if verdict is not None:
            moments.append(verdict.until)
        upcoming = [moment - now.wall for moment in moments if moment is not None]
        if upcoming:
            wait_s = min(max(min(upcoming), LOOK_AGAIN_MIN_S), LOOK_AGAIN_S)
            heapq.heappush(self._timers, (now.monotonic + wait_s, task_key))


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane as it stands in ready/: its type and the ranks of the tasks in it."""

    kind: str
    ranks: tuple[int, ...]


def promotions(
    backlog: Backlog, lanes: Mapping[str, LaneView], types: Mapping[str, TypeFacts], window: int
) -> list[Entry]:
    """Which waiting tasks go to ready/ now, most urgent first over all lanes.

    A lane is filled up to `window`; a task more urgent than the least urgent one there still goes in, up to twice the
    window, so that a full lane never makes an urgent task wait. A type's limit holds over all of its lanes. The
    tasks named leave the lane's order: the caller removes each, or puts it back.
    """
    chosen: list[Entry] = []
    active = {kind: facts.active for kind, facts in types.items()}
    sizes = {lane: len(view.ranks) for lane, view in lanes.items()}
    worst = {lane: max(view.ranks, default=0) for lane, view in lanes.items()}
    heads = [(entry.file, lane) for lane in lanes if (entry := backlog.best(lane)) is not None]
    heapq.heapify(heads)
    while heads:
        _, lane = heapq.heappop(heads)
        entry = backlog.take(lane)
        assert entry is not None  # the lane's best stood in heads, and nothing happened since
        kind = lanes[lane].kind
        facts = types[kind]
        now_active = TypeFacts(facts.paused, facts.halted, facts.limit, active[kind], facts.doubtful)
        fits = sizes[lane] < window or (entry.rank < worst[lane] and sizes[lane] < 2 * window)
        if not fits or judge_type(kind, now_active) != PASS:
            backlog.put_back(entry)
            continue
        chosen.append(entry)
        sizes[lane] += 1
        active[kind] += 1
        following = backlog.best(lane)
        if following is not None:
            heapq.heappush(heads, (following.file, lane))
    return chosen


def holdbacks(ready: list[TaskName], facts: TypeFacts, kind: str) -> list[TaskName]:
    """Which tasks of a type go back from ready/ to waiting/ because a gate closed again, least urgent first."""
    beyond = TypeFacts(facts.paused, facts.halted, None, 0)
    if judge_type(kind, beyond) != PASS:
        return _least_urgent(ready, len(ready))
    if facts.limit is None or facts.active <= facts.limit:
        return []
    return _least_urgent(ready, facts.active - facts.limit)


def displaced(ready: list[TaskName], best: Entry | None, window: int) -> list[TaskName]:
    """Which tasks of a lane make room for a more urgent one that waits, once even twice the window is full.

    All beyond the window at once, so that however many urgent tasks come, each costs no more than one move back.
    """
    if best is None or len(ready) < 2 * window or best.rank >= max(task.rank for task in ready):
        return []
    return _least_urgent(ready, len(ready) - window)


def _least_urgent(ready: list[TaskName], count: int) -> list[TaskName]:
    return sorted(ready, key=lambda name: (name.rank, name.order), reverse=True)[:count]
