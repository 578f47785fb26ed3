"""When the gates are asked again: at a time, with a parent, in every step; and what a closed gate costs meanwhile.

Method: gates of the tests' own, which count how often they are asked. Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.rules.cluster.pool_clock import LOOK_AGAIN_S, Now
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Held, Parent, TypeFacts
from spoold.rules.gates.gate import PASS, Refuse, TaskGate, Tasks, TypeGate, Verdict, Wait, Wake
from spoold.rules.gates.registry import registered
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, displaced, promotions
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules.strategies import limited, name

NOW = Now(1000.0, 1_770_000_000.0)
MANY = 100_000
SHUT = Wait("tide", "the tide is low")
STEP, TIME, PARENT = frozenset({Wake.STEP}), frozenset({Wake.TIME}), frozenset({Wake.PARENT})


def later(seconds: float) -> Now:
    return Now(NOW.monotonic + seconds, NOW.wall + seconds)


def words(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "wait for the tide"


@dataclass
class Tide:
    """A gate for every task, its answer now, and for which groups it was asked. Groups are by the part before `-`."""

    answers: dict[str, Verdict] = field(default_factory=dict)
    otherwise: Verdict = PASS
    asked: list[str] = field(default_factory=list)

    def judge(self, conditions: Conditions, facts: Facts) -> Verdict:
        self.asked.append(self.group(conditions, facts) or "")
        return self.answers.get(self.asked[-1], self.otherwise)

    @staticmethod
    def group(conditions: Conditions, facts: Facts) -> str | None:
        return facts.key.partition("-")[0]

    def gate(self, wakes: frozenset[Wake] = STEP) -> TaskGate:
        return TaskGate("tide", "the tide is high", wakes, words, self.judge, tasks=Tasks.ALL, group=self.group)


@dataclass
class Leader:
    """A backlog, and steps of a leader in which what is promoted goes to ready/."""

    parents: dict[str, Parent] = field(default_factory=dict)
    now: Now = NOW
    types: TypeFacts = field(default_factory=TypeFacts)

    def __post_init__(self) -> None:
        self.backlog = Backlog(lambda task_id: self.parents.get(key(task_id), Parent.UNKNOWN))

    def add(self, task_id: str, lane: str = "type=a", micros: int = 0, **asks: tuple[str, ...]) -> Entry:
        conditions = Conditions(more=tuple(asks.items())) if asks else NO_CONDITIONS
        micros = micros or len(self.backlog) + 1
        entry = Entry(name(task_id, micros=micros).encode(), lane, conditions)
        self.backlog.add(entry, self.now)
        return entry

    def step(self, seconds: float = 1.0, window: int = 10, room: int | None = None) -> list[str]:
        """The ids that go to ready/. room: so many more fit into each lane, else an empty window."""
        self.now = Now(self.now.monotonic + seconds, self.now.wall + seconds)
        self.backlog.tick(self.now)
        standing = () if room is None else (0,) * (window - room)
        lanes = {lane: LaneView("a", standing) for lane in self.backlog.lanes()}
        chosen = promotions(self.backlog, lanes, dict.fromkeys(lanes, self.types), window, self.now)
        for entry in chosen:
            self.backlog.remove(key(entry.name.id))
        return [entry.name.id for entry in chosen]


@contextmanager
def tide(otherwise: Verdict = PASS) -> Iterator[tuple[Tide, Leader]]:
    """A leader, and a gate that gives this answer where it has no other."""
    made = Tide(otherwise=otherwise)
    with registered(made.gate()):
        yield made, Leader()


def test_many_tasks_behind_one_closed_gate_cost_one_question_a_step_and_the_others_flow_past() -> None:
    with tide() as (gate, leader):
        gate.answers["shut"] = SHUT
        for number in range(MANY):
            leader.add(f"shut-{number}", f"type=a,cpu={number % 7 + 1}", micros=number + 1)
        assert gate.asked == [], "what is asked in every step is not asked on arrival"
        for number in range(30):
            leader.add(f"open-{number}", micros=MANY + number + 1)
        for _ in range(3):
            gate.asked.clear()
            assert len(leader.step()) == 10
            assert gate.asked.count("shut") == 1, "the seven lanes of one group are one question"
            assert len(gate.asked) <= 1 + 10
        gate.asked.clear()
        assert leader.step() == []
        assert gate.asked == ["shut"]
        gate.answers.clear()
        assert leader.step() == [f"shut-{number}" for number in range(70)], "all of them are there, oldest first"


def test_a_gate_is_not_asked_where_there_is_no_room() -> None:
    with tide() as (gate, leader):
        leader.add("a-1")
        assert leader.step(room=0) == []
        assert gate.asked == []
        assert leader.step(room=1) == ["a-1"]


def test_a_gate_that_closes_keeps_what_had_passed_and_was_not_taken() -> None:
    with tide() as (gate, leader):
        leader.add("a-1")
        leader.add("a-2")
        assert leader.step(room=1) == ["a-1"]
        gate.otherwise = SHUT
        assert leader.step() == []
        gate.otherwise = PASS
        assert leader.step() == ["a-2"]


def test_urgent_tasks_behind_a_closed_gate_displace_nothing() -> None:
    ready = [name(f"r{number}", rank=5000, micros=number) for number in range(4)]
    with tide() as (gate, leader):
        gate.answers["shut"] = SHUT
        for task_id in ("shut-1", "open-1"):
            leader.backlog.add(Entry(name(task_id, rank=4990).encode(), "type=a", NO_CONDITIONS), NOW)
        back = displaced(ready, leader.backlog, "type=a", TypeFacts(), 2, NOW)
        assert [task.id for task in back] == ["r3", "r2"], "for the one that is open"
        leader.backlog.remove("open-1")
        leader.backlog.tick(NOW)
        assert displaced(ready, leader.backlog, "type=a", TypeFacts(), 2, NOW) == []
        assert leader.backlog.best("type=a") is None, "in this step nothing of the lane may go"
        leader.backlog.tick(NOW)
        assert leader.backlog.best("type=a") is not None, "in the next one that is asked anew"


def test_a_group_that_waits_under_another_name_is_not_asked_for_ever() -> None:
    with tide(otherwise=Wait("moon", "a gate that does not know its name")) as (gate, leader):
        leader.backlog.add(Entry(name("a-1", rank=1).encode(), "type=a", NO_CONDITIONS), NOW)
        ready = [name(f"r{number}", micros=number) for number in range(4)]
        assert displaced(ready, leader.backlog, "type=a", TypeFacts(), 2, NOW) == []
        assert gate.asked == ["a"]


def test_a_gate_that_refuses_in_a_step_ends_one_task_and_goes_on_with_the_next() -> None:
    never = Refuse("tide", Code.INVALID_TASK, "there is no sea")
    with tide() as (gate, leader):
        gate.answers["dry"] = never
        dry, wet = leader.add("dry-1"), leader.add("wet-1")
        assert leader.step() == ["wet-1"]
        assert leader.backlog.refused() == [(dry, never)]
        assert leader.backlog.refusals == 1
        assert leader.step() == []
        assert wet.groups == (("tide", "wet"),)


def test_a_gate_of_a_type_that_refuses_ends_its_tasks() -> None:
    never = Refuse("tide", Code.INVALID_TASK, "there is no sea")
    with registered(TypeGate("tide", "the tide is high", STEP, None, lambda kind, facts: never)):
        leader = Leader()
        entry = leader.add("a")
        assert leader.step() == []
        assert leader.backlog.refused() == [(entry, never)]


def _task_gate(until: float) -> TaskGate | TypeGate:
    return Tide(otherwise=replace(SHUT, until=until)).gate(STEP | TIME)


def _type_gate(until: float) -> TaskGate | TypeGate:
    return TypeGate("tide", "the tide is high", STEP | TIME, words, lambda kind, facts: replace(SHUT, until=until))


@pytest.mark.parametrize("made", [_task_gate, _type_gate])
def test_a_step_is_due_at_the_first_moment_that_a_gate_named(made: Callable[[float], TaskGate | TypeGate]) -> None:
    with registered(made(NOW.wall + 61)):
        leader = Leader()
        leader.add("a-1")
        leader.add("b-1")
        assert leader.step() == []
        assert leader.backlog.next_due() == NOW.monotonic + 61
    with registered(made(NOW.wall + 10 * LOOK_AGAIN_S)):
        assert leader.step() == []
        assert leader.backlog.next_due() == leader.now.monotonic + LOOK_AGAIN_S


def test_a_gate_that_waits_for_a_time_and_names_none_is_asked_again_all_the_same() -> None:
    gate = Tide(otherwise=SHUT)
    with registered(gate.gate(TIME)):
        leader = Leader()
        leader.add("a-1")
        assert len(gate.asked) == 1
        gate.otherwise = PASS
        assert leader.step() == []
        assert leader.step(LOOK_AGAIN_S) == ["a-1"]
        assert len(gate.asked) == 2


def test_a_gate_with_parents_of_its_own_is_asked_when_one_of_them_ends() -> None:
    def of(conditions: Conditions) -> tuple[str, ...]:
        asked = conditions.asks("after_fall")
        return asked if isinstance(asked, tuple) else ()

    def judge(conditions: Conditions, facts: Facts) -> Verdict:
        failed = any(facts.parent(parent) is Parent.FAILED for parent in of(conditions))
        return PASS if failed else Wait("after_fall", "none of them has failed")

    gate = TaskGate("after_fall", "one of the `after_fall` tasks has failed", PARENT, words, judge, parents=of)
    with registered(gate):
        leader = Leader()
        leader.add("clean-up", after_fall=("P", "q"))
        assert leader.backlog.graph
        assert leader.step(LOOK_AGAIN_S) == []
        leader.parents["p"] = Parent.FAILED
        assert leader.step(LOOK_AGAIN_S) == [], "nothing woke it"
        leader.backlog.parent_changed("p", leader.now)
        assert leader.step() == ["clean-up"]


def test_a_task_that_comes_again_is_grouped_again() -> None:
    groups = {"a": "one"}
    gate = TaskGate(
        "tide", "-", STEP, words, lambda *_: PASS, tasks=Tasks.ALL, group=lambda conditions, facts: groups[facts.key]
    )
    with registered(gate):
        leader = Leader()
        leader.add("a", micros=1)
        groups["a"] = "two"
        leader.add("a", micros=1)
        best = leader.backlog.best("type=a")
        assert best is not None
        assert best.groups == (("tide", "two"),)
        assert leader.step() == ["a"]
        assert leader.backlog.lanes() == []


def test_a_gate_knows_the_task_its_type_and_what_is_in_use_at_that_moment() -> None:
    seen: list[Facts] = []

    def judge(conditions: Conditions, facts: Facts) -> Verdict:
        seen.append(facts)
        return PASS

    gate = TaskGate("tide", "-", STEP, words, judge, tasks=Tasks.ALL)
    with registered(gate):
        leader = Leader(types=limited("a", 5, 1))
        leader.backlog.gathered = {"tide": "high"}
        leader.add("One")
        leader.add("two")
        used = []

        def counting(conditions: Conditions, facts: Facts) -> Verdict:
            used.append(facts.type.stock.used["type:a"])
            return judge(conditions, facts)

        with_counts = replace(gate, name="tide-2", judge=counting)
        with registered(with_counts):
            leader.add("three")
            leader.add("four")
            assert leader.step() == ["One", "two", "three", "four"]
        assert used == [3, 4], "those that were chosen before in the same step are counted"
        assert [(facts.key, facts.kind, facts.more) for facts in seen][:2] == [
            ("one", "a", {"tide": "high"}),
            ("two", "a", {"tide": "high"}),
        ]


def test_a_task_that_would_go_straight_to_ready_is_asked_about_only_where_a_gate_looks_at_every_task() -> None:
    leader = Leader()
    entry = Entry(name("a-1").encode(), "type=a", NO_CONDITIONS)
    assert leader.backlog.would_let(entry, TypeFacts(), NOW)
    gate = Tide(otherwise=SHUT)
    with registered(gate.gate()):
        assert not leader.backlog.would_let(entry, TypeFacts(), NOW)
        gate.otherwise = PASS
        assert leader.backlog.would_let(entry, TypeFacts(), NOW)
    with registered(replace(gate.gate(), tasks=Tasks.ASKING)):
        assert leader.backlog.would_let(entry, TypeFacts(), NOW)
    assert len(gate.asked) == 2


def test_a_task_that_goes_while_its_group_is_shut_is_forgotten() -> None:
    with tide() as (gate, leader):
        gate.answers["shut"] = SHUT
        leader.add("shut-1")
        assert leader.step() == []
        leader.backlog.remove("shut-1")
        gate.answers.clear()
        assert leader.step() == []
        assert leader.backlog.lanes() == []
