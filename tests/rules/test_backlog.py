"""What is waiting, and which of it goes to ready/ next: urgent first, within the limits, and each exactly once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import TaskName, key
from spoold.protocol.result import Code
from spoold.rules.cluster.pool_clock import LOOK_AGAIN_S, Now
from spoold.rules.gates import registry
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent, TypeFacts
from spoold.rules.gates.gate import PASS, Refuse, Wait
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.resources import Capacity, Stock
from spoold.rules.scheduling import backlog
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, displaced, holdbacks, promotions
from spoold.rules.scheduling.queues import Queues
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules.strategies import limited, name

NOW = Now(1000.0, 1_770_000_000.0)


def later(seconds: float) -> Now:
    return Now(NOW.monotonic + seconds, NOW.wall + seconds)


@dataclass
class World:
    """A backlog, and what it is told of its tasks' parents."""

    parents: dict[str, Parent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.backlog = Backlog(lambda task_id: self.parents.get(key(task_id), Parent.UNKNOWN))

    def add(self, task_id: str, lane: str = "type=a", *, at: Now = NOW, rest_s: float = 0, **fields: Any) -> Entry:
        names = {k: fields.pop(k) for k in ("rank", "micros") if k in fields}
        conditions = Conditions(**fields) if fields else NO_CONDITIONS
        entry = Entry(name(task_id, **names).encode(), lane, conditions, at.monotonic + rest_s if rest_s else 0.0)
        self.parents[key(task_id)] = Parent.OPEN
        self.backlog.add(entry, at)
        return entry

    def end(self, task_id: str, state: Parent = Parent.COMPLETED, at: Now = NOW) -> None:
        self.backlog.remove(key(task_id))
        self.parents[key(task_id)] = state
        self.backlog.parent_changed(key(task_id), at)

    def promote(self, window: int = 10, types: dict[str, TypeFacts] | None = None) -> list[str]:
        """The ids that go to ready/ now; they leave the backlog, as the leader has it."""
        lanes = {lane: LaneView(lane.removeprefix("type="), ()) for lane in self.backlog.lanes()}
        facts = {lane: (types or {}).get(view.kind, TypeFacts()) for lane, view in lanes.items()}
        chosen = promotions(self.backlog, lanes, facts, window, NOW)
        for entry in chosen:
            assert self.backlog.remove(key(entry.name.id)) is entry
        return [entry.name.id for entry in chosen]


def test_a_task_without_conditions_is_runnable_at_once() -> None:
    world = World()
    entry = world.add("A")
    assert "a" in world.backlog
    assert world.backlog.get("a") is entry
    assert len(world.backlog) == 1
    assert world.backlog.best("type=a") is entry
    assert not world.backlog.graph
    assert world.backlog.lanes() == ["type=a"]
    assert world.backlog.verdict(entry, NOW) is None
    assert world.backlog.next_due() is None
    assert world.promote() == ["A"]
    assert world.backlog.lanes() == []
    assert len(world.backlog) == 0


def test_what_is_removed_is_never_chosen() -> None:
    world = World()
    world.add("a")
    assert world.backlog.remove("a") is not None
    assert world.backlog.remove("a") is None
    assert world.backlog.best("type=a") is None
    assert world.backlog.best("type=unheard-of") is None
    assert world.backlog.take("type=a") is None
    assert world.promote() == []


def test_the_most_urgent_comes_first_then_the_oldest() -> None:
    world = World()
    world.add("late", micros=30)
    world.add("urgent", rank=4000, micros=40)
    world.add("early", micros=10)
    assert world.promote() == ["urgent", "early", "late"]


def test_a_task_waits_for_its_parents_and_runs_when_the_last_one_ends() -> None:
    world = World()
    world.add("child", needs=("p", "Q"))
    assert world.promote() == []
    world.add("p")
    world.add("q")
    assert sorted(world.promote()) == ["p", "q"]
    world.end("p")
    assert world.promote() == []
    world.end("q")
    assert world.promote() == ["child"]


def test_a_failed_parent_refuses_its_child_until_somebody_removes_it() -> None:
    world = World()
    entry = world.add("child", needs=("p",))
    world.end("p", Parent.FAILED)
    [(refused, verdict)] = world.backlog.refused()
    assert refused is entry
    assert verdict.code is Code.DEPENDENCY_FAILED
    assert isinstance(world.backlog.verdict(entry, NOW), Refuse)
    assert world.promote() == []
    world.end("p", Parent.OPEN)
    assert world.backlog.refused() == []
    world.end("p", Parent.FAILED)
    world.backlog.remove("child")
    assert world.backlog.refused() == []


def test_a_cycle_is_refused_whole_and_names_its_members_to_each() -> None:
    world = World()
    world.add("A", needs=("B",))
    world.add("B", needs_ended=("C",))
    assert world.backlog.refused() == []
    world.add("C", needs=("A",))
    refused = world.backlog.refused()
    assert [entry.name.id for entry, _ in refused] == ["A", "B", "C"]
    assert {verdict.code for _, verdict in refused} == {Code.INVALID_TASK}
    world.end("A", Parent.FAILED)
    assert [entry.name.id for entry, _ in world.backlog.refused()] == ["B", "C"]
    for _, verdict in world.backlog.refused():
        assert all(member in verdict.reason for member in "ABC")


def test_a_member_of_a_cycle_that_was_runnable_is_not_promoted() -> None:
    """b was cancelled before a came; a may run after it, and waits for room. Now b is tried again, and needs a."""
    world = World()
    world.parents["b"] = Parent.FAILED
    world.add("a", needs_ended=("b",))
    assert world.backlog.best("type=a") is not None
    world.add("b", needs=("a",))
    assert world.promote() == []
    assert len(world.backlog.refused()) == 2


def test_a_task_that_left_and_came_back_is_chosen_once() -> None:
    world = World()
    for _ in range(3):
        world.add("a")
        world.backlog.remove("a")
    world.add("a")
    world.add("b", micros=5)
    assert world.promote() == ["b", "a"]


def test_a_task_whose_parent_came_to_life_and_ended_again_is_chosen_once() -> None:
    world = World()
    world.parents["p"] = Parent.FAILED
    world.add("a", needs_ended=("p",))
    world.end("p", Parent.OPEN)
    assert world.backlog.best("type=a") is None
    world.end("p", Parent.FAILED)
    assert world.promote() == ["a"]


def test_a_task_that_changed_its_lane_or_rank_is_found_where_it_is_now() -> None:
    world = World()
    world.add("a", "type=old")
    world.add("a", "type=new", rank=1)
    assert world.promote() == ["a"]
    assert len(world.backlog) == 0
    assert world.backlog.best("type=old") is None


def test_a_task_that_rests_runs_when_its_rest_is_over_and_not_before() -> None:
    world = World()
    entry = world.add("a", rest_s=60)
    assert isinstance(world.backlog.verdict(entry, NOW), Wait)
    world.backlog.tick(later(59))
    assert world.promote() == []
    world.backlog.tick(later(61))
    assert world.promote() == ["a"]
    assert world.backlog.next_due() is None


@pytest.mark.parametrize("rest_s", [1e-9, 1e-7, 1e-4, 0.1, 0.25, 12.345678, 299.9999999])
def test_a_clock_that_jumps_exactly_to_what_is_due_gets_there(rest_s: float) -> None:
    """The rest of a rest can be too short for a wall clock in a float; a tick must not go round for ever."""
    world = World()
    world.add("a", rest_s=rest_s)
    now, ticks = NOW, 0
    while not world.promote():
        due = world.backlog.next_due()
        assert due is not None
        assert due > now.monotonic or ticks == 0
        now, ticks = later(due - NOW.monotonic), ticks + 1
        world.backlog.tick(now)
        assert ticks < 5
    assert now.monotonic - NOW.monotonic <= rest_s + 0.01


def test_a_long_wait_is_looked_at_again_since_wall_clocks_can_be_set() -> None:
    world = World()
    world.add("a", not_before=NOW.wall + 10_000)
    assert world.backlog.next_due() == NOW.monotonic + LOOK_AGAIN_S
    world.backlog.tick(Now(NOW.monotonic + LOOK_AGAIN_S, NOW.wall + 10_000))
    assert world.promote() == ["a"]


def test_a_runnable_task_is_still_watched_for_its_deadline() -> None:
    world = World()
    world.add("a", deadline=NOW.wall + 60)
    assert world.backlog.best("type=a") is not None
    world.backlog.tick(later(30))
    assert world.backlog.refused() == []
    world.backlog.tick(later(60.5))
    assert [verdict.code for _, verdict in world.backlog.refused()] == [Code.DEADLINE]
    assert world.promote() == []


def test_timers_of_tasks_that_are_gone_or_may_run_already_do_nothing() -> None:
    world = World()
    world.add("gone", rest_s=1)
    world.backlog.remove("gone")
    world.add("a", rest_s=2)
    world.add("a")
    world.backlog.tick(later(5))
    assert world.promote() == ["a"]
    assert world.backlog.next_due() is None


def test_tasks_are_counted_by_lane() -> None:
    world = World()
    world.add("a", "type=a")
    world.add("b", "type=b", needs=("x",))
    world.add("c", "type=b")
    assert world.backlog.per_lane() == {"type=a": 1, "type=b": 2}
    assert dict(world.backlog.items()).keys() == {"a", "b", "c"}
    world.backlog.remove("a")
    assert world.backlog.per_lane() == {"type=b": 2}


LANES = ("type=a", "type=a,cpu=1", "type=b")
KIND = {"type=a": "a", "type=a,cpu=1": "a", "type=b": "b"}
waiting = st.lists(st.tuples(st.sampled_from(LANES), st.integers(4990, 5010)), max_size=30)
standing = st.dictionaries(st.sampled_from(LANES), st.lists(st.integers(4990, 5010), max_size=6).map(tuple))
limits = st.dictionaries(st.sampled_from("ab"), st.integers(0, 8))


@given(waiting, standing, limits, st.integers(1, 4), st.sampled_from([(), ("a",), ("+all",)]), st.booleans())
def test_a_plan_keeps_every_limit_and_is_done_when_it_is_applied(
    tasks: list[tuple[str, int]],
    ready: dict[str, tuple[int, ...]],
    most: dict[str, int],
    window: int,
    paused: tuple[str, ...],
    halted: bool,
) -> None:
    world = World()
    for number, (lane, rank) in enumerate(tasks):
        world.add(f"t{number}", lane, rank=rank, micros=number)

    def plan() -> list[Entry]:
        lanes = {lane: LaneView(KIND[lane], ready.get(lane, ())) for lane in LANES}
        active = Counter(KIND[lane] for lane, ranks in ready.items() for _ in ranks)
        capacity = {f"type:{kind}": Capacity(limit, kind, kind) for kind, limit in most.items()}
        stock = Stock(capacity, {f"type:{kind}": count for kind, count in active.items()})
        facts = {kind: TypeFacts(dict.fromkeys(paused), halted, {f"type:{kind}": 1}, stock) for kind in "ab"}
        return promotions(world.backlog, lanes, {lane: facts[KIND[lane]] for lane in LANES}, window, NOW)

    before = {lane: len(ranks) for lane, ranks in ready.items()}
    chosen = plan()
    assert len({entry.name.id for entry in chosen}) == len(chosen)
    assert [entry.file for entry in chosen] == sorted(entry.file for entry in chosen)
    for entry in chosen:
        assert world.backlog.remove(entry.name.id) is entry
        ready[entry.lane] = (*ready.get(entry.lane, ()), entry.name.rank)
    for lane in LANES:
        left = [e.file for e in world.backlog._entries.values() if e.lane == lane]
        mine = [entry.file for entry in chosen if entry.lane == lane]
        assert not left or not mine or max(mine) < min(left)
        assert len(ready.get(lane, ())) <= max(2 * window, before.get(lane, 0))
    for kind, limit in most.items():
        began = sum(count for lane, count in before.items() if KIND[lane] == kind)
        assert sum(len(ranks) for lane, ranks in ready.items() if KIND[lane] == kind) <= max(limit, began)
    if halted or "+all" in paused:
        assert not chosen
    if "a" in paused:
        assert all(entry.lane == "type=b" for entry in chosen)
    assert plan() == []


def test_an_urgent_task_enters_a_full_window_but_never_more_than_twice_of_it() -> None:
    world = World()
    for number in range(10):
        world.add(f"t{number}", rank=4000, micros=number)
    lanes = {"type=a": LaneView("a", (5000, 5000))}
    assert len(promotions(world.backlog, lanes, {"type=a": TypeFacts()}, 2, NOW)) == 2
    assert promotions(world.backlog, {"type=a": LaneView("a", (4000, 4000))}, {"type=a": TypeFacts()}, 2, NOW) == []


def test_a_limit_is_shared_by_the_lanes_of_a_type_most_urgent_first() -> None:
    world = World()
    world.add("a1", "type=a", rank=10)
    world.add("a3", "type=a", rank=30)
    world.add("b2", "type=a,cpu=1", rank=20)
    lanes = {lane: LaneView("a", ()) for lane in ("type=a", "type=a,cpu=1")}
    chosen = promotions(world.backlog, lanes, dict.fromkeys(lanes, limited("a", 2)), 10, NOW)
    assert [entry.name.id for entry in chosen] == ["a1", "b2"]


def test_what_is_in_doubt_takes_a_place_of_the_limit_and_sends_nothing_back() -> None:
    world = World()
    for number in range(3):
        world.add(f"a{number}", "type=a", rank=number)
    facts = limited("a", 2, 0, 1)
    chosen = promotions(world.backlog, {"type=a": LaneView("a", ())}, {"type=a": facts}, 10, NOW)
    assert [entry.name.id for entry in chosen] == ["a0"]
    assert holdbacks({"type=a": [name("a0"), name("a1")]}, {"type=a": limited("a", 2, 2, 1)}) == []


def test_of_the_resources_of_a_task_one_may_be_over_alone() -> None:
    there = {"limit:x": Capacity(1, "limit x", "-")}
    facts = TypeFacts(uses={"type:a": 1, "limit:x": 1}, stock=Stock(there, {"limit:x": 2, "type:a": 9}))
    ready = {"type=a": [name("a0", rank=1), name("a1", rank=2)]}
    assert [task.id for _, task in holdbacks(ready, {"type=a": facts})] == ["a1"]


def test_what_keeps_a_queue_is_told_while_its_task_waits() -> None:
    stands = True
    queues = Queues(lambda file, lane, groups: stands)
    queues.push("type=a", (("budget", 1),), "x")
    assert queues.head("type=a", {("budget", 1)}) is None
    assert list(queues.passed()) == [("x", ("type=a", (("budget", 1),)))]
    stands = False
    assert list(queues.passed()) == []


names = st.lists(
    st.builds(lambda rank, micros: (rank, micros), st.integers(4990, 5010), st.integers(0, 10**6)),
    unique_by=lambda pair: pair[1],
    max_size=12,
)


@given(
    names,
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(0, 10)),
    st.sampled_from([(), ("a",), ("+all",), ("b",)]),
)
def test_what_is_held_back_is_the_least_urgent_and_no_more_than_needed(
    pairs: list[tuple[int, int]], claimed: int, limit: int | None, paused: tuple[str, ...]
) -> None:
    ready = [name(f"t{micros}", rank=rank, micros=micros) for rank, micros in pairs]
    active = len(ready) + claimed
    facts = {"type=a": limited("a", limit, active, paused=paused)}
    back = [task for _, task in holdbacks({"type=a": ready}, facts)]
    stay = [task for task in ready if task not in back]
    if paused in (("a",), ("+all",)):
        assert not stay
    elif limit is None:
        assert not back
    else:
        assert len(back) == min(len(ready), max(0, active - limit))
    assert all(_urgency(kept) < _urgency(held) for kept in stay for held in back)
    left = limited("a", limit, len(stay) + claimed, paused=paused)
    assert holdbacks({"type=a": stay}, {"type=a": left}) == []
    if stay:
        assert judge_type("a", left, ready=True) == PASS


def _urgency(task: TaskName) -> tuple[int, str]:
    return (task.rank, task.order)


graphs = st.lists(
    st.tuples(st.sets(st.integers(0, 7), max_size=3), st.sets(st.integers(0, 7), max_size=2)), min_size=1, max_size=8
)


@given(graphs, st.randoms(use_true_random=False), st.sets(st.integers(0, 7)))
def test_tasks_may_arrive_in_any_order_and_all_of_them_end(
    graph: list[tuple[set[int], set[int]]], dice: Any, failing: set[int]
) -> None:
    """Whoever is in a cycle, and whoever needs what failed, fails; the rest runs, each after its parents.

    A dependency that nobody submits is left out here, since it rightly waits for ever; so is an after_any within a
    cycle, which may run once another member has failed.
    """
    size = len(graph)
    needs = {f"t{i}": {f"t{p}" for p in graph[i][0] if p < size} for i in range(size)}
    either = {task: needs[task] | {f"t{p}" for p in graph[int(task[1:])][1] if p < size} for task in needs}
    ended = {task: {p for p in either[task] - needs[task] if task not in _behind(p, either)} for task in needs}
    world, ran, left = World(), list[str](), list(needs)
    dice.shuffle(left)
    while left or len(world.backlog):
        if left and (dice.random() < 0.5 or not world.backlog.lanes()):
            task_id = left.pop()
            world.add(task_id, needs=tuple(sorted(needs[task_id])), needs_ended=tuple(sorted(ended[task_id])))
        for entry, _ in world.backlog.refused()[:1]:
            world.end(entry.name.id, Parent.FAILED)
        for task_id in world.promote(window=2):
            assert all(world.parents[p] is Parent.COMPLETED for p in needs[task_id])
            assert all(world.parents[p] in (Parent.COMPLETED, Parent.FAILED) for p in ended[task_id])
            ran.append(task_id)
            failed = int(task_id[1:]) in failing
            world.end(task_id, Parent.FAILED if failed else Parent.COMPLETED)
    assert len(set(ran)) == len(ran)
    assert set(ran) == _expected(needs, ended, failing)


def _expected(needs: dict[str, set[str]], ended: dict[str, set[str]], failing: set[int]) -> set[str]:
    """Which tasks run in the end, whatever the order: those in no cycle whose needs all complete."""
    state = {
        task: Parent.FAILED for task, parents in needs.items() if any(task in _behind(p, needs) for p in parents)
    }
    ran: set[str] = set()
    while len(state) < len(needs):
        for task, parents in needs.items():
            if task in state or not parents | ended[task] <= state.keys():
                continue
            if any(state[p] is Parent.FAILED for p in parents):
                state[task] = Parent.FAILED
                continue
            ran.add(task)
            state[task] = Parent.FAILED if int(task[1:]) in failing else Parent.COMPLETED
    return ran


def _behind(task: str, parents: dict[str, set[str]]) -> set[str]:
    """The task and all that it waits for, the slow way."""
    reached: set[str] = set()
    front = {task}
    while front:
        reached |= front
        front = set().union(*(parents[p] for p in front)) - reached
    return reached


def test_joining_many_parents_asks_once_and_not_once_for_each() -> None:
    """10,000 parents that end one after the other would be 100,000,000 look-ups if each asked for all."""
    parents = [f"p{number}" for number in range(10_000)]
    states = dict.fromkeys(parents, Parent.OPEN)
    asked = 0

    def parent(task_id: str) -> Parent:
        nonlocal asked
        asked += 1
        return states[task_id]

    backlog = Backlog(parent)
    backlog.add(Entry(name("join").encode(), "type=t", Conditions(needs=tuple(parents))), NOW)
    for one in parents:
        assert backlog.best("type=t") is None
        states[one] = Parent.COMPLETED
        backlog.parent_changed(one, NOW)
    assert backlog.best("type=t") is not None
    assert asked < 10 * len(parents)


def test_an_urgent_task_displaces_what_stands_beyond_the_window_and_nothing_else_does() -> None:
    ready = [name(f"r{number}", rank=5000, micros=number) for number in range(4)]
    world = World()

    def back(stand: list[TaskName]) -> list[str]:
        return [task.id for task in displaced(stand, world.backlog, "type=a", TypeFacts(), 2, NOW)]

    assert back(ready) == []
    world.add("usual", rank=5000)
    assert back(ready) == []
    world.add("urgent", rank=4990)
    assert back(ready) == ["r3", "r2"]
    assert back(ready[:3]) == []


def test_tasks_are_grouped_anew_whether_they_may_run_or_not_and_now_and_then_the_leader_breathes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, breaths = World(), list[int]()
    world.add("runs")
    world.add("waits", needs=("unknown",))
    monkeypatch.setattr(backlog, "BREATHE_EVERY", 2)
    monkeypatch.setattr(registry, "groups", lambda conditions, facts: (("new", 1),))
    world.backlog.regroup(NOW, lambda: breaths.append(1))
    assert breaths == [1]
    assert {entry.groups for _, entry in world.backlog.items()} == {(("new", 1),)}
    assert world.promote() == ["runs"], "no gate of that name is there to keep it"


@pytest.mark.parametrize("lasts", [False, True])
def test_a_task_that_cannot_be_judged_keeps_nobody_back_and_is_asked_again_or_never(
    monkeypatch: pytest.MonkeyPatch, lasts: bool
) -> None:
    world, faulty = World(), {"a"}

    def contain(task_key: str, judge: Callable[[], None]) -> tuple[str, bool] | None:
        if task_key in faulty:
            return "a bug of ours", lasts
        judge()
        return None

    monkeypatch.setattr(registry, "groups", lambda conditions, facts: (("new", 1),))
    world.add("a")
    world.add("b")
    world.backlog.regroup(NOW, lambda: None)
    world.backlog.contain = contain
    assert world.promote() == ["b"]
    assert [verdict.code for _, verdict in world.backlog.refused()] == [Code.INVALID_TASK] * lasts
    faulty.clear()
    world.backlog.tick(later(LOOK_AGAIN_S / 2))
    assert world.promote() == []
    world.backlog.tick(later(LOOK_AGAIN_S))
    assert world.promote() == ([] if lasts else ["a"])
