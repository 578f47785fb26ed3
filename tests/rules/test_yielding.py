"""Ready tasks make way for more urgent ones: for those alone, no more of them than must, and never in vain."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import TaskName
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import budget_gate, lock_gate
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Parent, TypeFacts
from spoold.rules.gates.lock_holders import Demand
from spoold.rules.gates.registry import holds, unbook
from spoold.rules.gates.resources import Capacity, Stock
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, promotions
from spoold.rules.scheduling.queues import Standing, Way
from spoold.rules.scheduling.waiting_task import Entry

NOW = Now(1000.0, 1000.0)
UNITS = 6
CAPACITY = {"limit:x": Capacity(UNITS, "limit x", "[limits.x] max")}


def named(task_id: str, rank: int, number: int) -> TaskName:
    return TaskName(rank, f"{number:010}-1", task_id)


def lane(units: int) -> str:
    return f"type=t,use=x={units}" if units > 1 else "type=t,use=x"


def units_in(lane_name: str) -> dict[str, int]:
    return {"limit:x": int(lane_name.rpartition("=")[2])} if lane_name.count("=") > 2 else {"limit:x": 1}


# The rank and the units of a task.
TASKS = st.tuples(st.integers(1, 4), st.integers(1, 3))


@given(st.lists(TASKS, max_size=6), st.integers(0, 4), st.lists(TASKS, min_size=1, max_size=4))
def test_nobody_waits_for_what_less_urgent_ready_tasks_hold(
    ready: list[tuple[int, int]], claimed: int, waiting: list[tuple[int, int]]
) -> None:
    """P1: by all sets of a few tasks. Afterwards no units are used twice, and the most urgent task goes if it can."""
    standing = [Standing(named(f"r{n}", rank, n), lane(units)) for n, (rank, units) in enumerate(ready)]
    used = claimed + sum(units for _, units in ready)
    backlog = Backlog(lambda _: Parent.UNKNOWN)
    entries = [
        Entry(named(f"w{n}", rank, 100 + n).encode(), lane(units), NO_CONDITIONS)
        for n, (rank, units) in enumerate(waiting)
    ]
    for entry in entries:
        backlog.add(entry, NOW)
    backlog.tick(NOW)
    stock = Stock(CAPACITY, {"limit:x": used})
    lanes = {name: LaneView("t", ()) for name in backlog.lanes()}
    facts = {name: TypeFacts(uses=units_in(name), stock=stock) for name in lanes}
    way = Way(lambda: standing)
    chosen = promotions(backlog, lanes, facts, 10, NOW, way, units_in)
    gone = [one for file in way.made for one in way.made[file]]
    assert len(gone) == len({one.task.id for one in gone})
    taken = sum(units_in(entry.lane)["limit:x"] for entry in chosen)
    freed = sum(units_in(one.lane)["limit:x"] for one in gone)
    assert used + taken - freed <= max(UNITS, used)
    for entry in chosen:
        mine = way.made.get(entry.file, [])
        assert all(one.task.rank > entry.rank for one in mine), "for a more urgent one alone"
    first = min(entries, key=lambda entry: entry.file)
    could = sum(units_in(one.lane)["limit:x"] for one in standing if one.task.rank > first.rank)
    if used - could + units_in(first.lane)["limit:x"] <= UNITS:
        assert first in chosen, "nothing but less urgent ready tasks keeps it back"
        mine = way.made.get(first.file, [])
        spare = UNITS - used - units_in(first.lane)["limit:x"] + sum(units_in(one.lane)["limit:x"] for one in mine)
        assert all(units_in(one.lane)["limit:x"] > spare for one in mine), "none makes way that need not"
    else:
        assert first not in chosen


def test_a_gate_that_is_not_there_and_facts_that_are_not_gathered_hold_nothing() -> None:
    facts = Facts(0.0, lambda _: Parent.UNKNOWN)
    nothing = (NO_CONDITIONS, facts)
    assert not any(holds(gate, nothing, nothing) for gate in ("nosuch", "deadline", budget_gate.NAME, lock_gate.NAME))
    unbook(*nothing)


def test_a_ready_task_holds_what_a_waiting_one_wants_only_where_their_locks_clash() -> None:
    backlog = Backlog(lambda _: Parent.UNKNOWN)
    waiting = Entry(named("w", 1, 1).encode(), lane(1), _locking("src/a"))
    for pattern, clash in (("src/**", True), ("docs/**", False)):
        assert (
            backlog.holds(waiting, lock_gate.NAME, Standing(named("r", 2, 2), lane(1), _locking(pattern)), NOW)
            is clash
        )


def _locking(pattern: str) -> Conditions:
    return Conditions(more=((lock_gate.NAME, Demand((pattern,))),))
