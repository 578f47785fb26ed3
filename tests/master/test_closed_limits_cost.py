"""What tasks behind a closed limit cost in a step: one question a lane, and no call, however many there are.

Method: counts, and nothing is timed. Gates count their questions, and a counter below the mount counts calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from spoold.protocol.lanes import kind_in
from spoold.protocol.request import parse_request
from spoold.protocol.toml_file import load_settings
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import registry
from spoold.rules.gates.breaker_gate import Book, Row
from spoold.rules.gates.facts import NO_CONDITIONS, Known, LaneFacts, Parent, TypeFacts
from spoold.rules.gates.gate import TypeGate, Verdict
from spoold.rules.gates.resources import Resources, Stock
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import LaneView, promotions
from spoold.rules.scheduling.waiting_task import Entry
from tests.master.test_calls_per_task import Pool
from tests.master.test_calls_per_task import counted as calls_of
from tests.rules.strategies import name

MANY = 100_000
NOW = Now(1000.0, 1_770_000_000.0)
SETTINGS = "[limits.llm]\nmax = 2\nrate = {count = 2, per_s = 60}\n"
LANE = "type=a,use=llm"
CLOSED = ("limit", "rate", "quota")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the questions to the gates of types."""
    asked: Counter[str] = Counter()
    before = list(registry.TYPE_GATES)

    def counting(gate: TypeGate) -> TypeGate:
        def judge(kind: str, facts: TypeFacts) -> Verdict:
            asked[gate.name] += 1
            return gate.judge(kind, facts)

        return replace(gate, judge=judge)

    registry.TYPE_GATES[:] = map(counting, before)
    try:
        yield asked
    finally:
        registry.TYPE_GATES[:] = before


@pytest.mark.parametrize("closed", CLOSED)
def test_a_hundred_thousand_tasks_behind_a_closed_limit_are_one_question_a_step(closed: str) -> None:
    settings = load_settings(SETTINGS.encode(), "spool.toml")
    resources = Resources(settings)
    request = parse_request("close.llm.1.json")
    assert request is not None
    known = Known(NOW.wall, settings, (request,) if closed == "quota" else ())
    used = {} if closed == "quota" else {f"{closed}:llm": 2}
    facts = LaneFacts(known, resources, Stock(resources.capacity, used), {}, {})
    backlog = Backlog(lambda _: Parent.UNKNOWN)
    for number in range(MANY):
        backlog.add(Entry(name(f"shut-{number}", micros=number + 1).encode(), LANE, NO_CONDITIONS), NOW)
    for number in range(5):
        backlog.add(Entry(name(f"open-{number}", micros=MANY + number).encode(), "type=a", NO_CONDITIONS), NOW)
    lanes = {lane: LaneView("a", ()) for lane in backlog.lanes()}
    with counted() as asked:
        chosen = promotions(backlog, lanes, {lane: facts.of(lane) for lane in lanes}, 10, NOW)
    assert [entry.name.id for entry in chosen] == [f"open-{number}" for number in range(5)]
    assert asked[closed] <= 1 + 5
    assert max(asked.values()) <= 1 + 5


def test_a_hundred_thousand_tasks_behind_an_open_breaker_are_one_question_a_step() -> None:
    settings = load_settings(b"[types.a]\nbreaker = {failures = 3}\n", "spool.toml")
    resources, book = Resources(settings), Book({"a": Row(3, NOW.wall + 9)})
    known = Known(NOW.wall, settings, (), more={"breaker": book})
    facts = LaneFacts(known, resources, Stock(), registry.gather(known), {})
    backlog = Backlog(lambda _: Parent.UNKNOWN)
    for number in range(MANY):
        backlog.add(Entry(name(f"shut-{number}", micros=number + 1).encode(), "type=a", NO_CONDITIONS), NOW)
    backlog.add(Entry(name("open", micros=MANY).encode(), "type=b", NO_CONDITIONS), NOW)
    lanes = {lane: LaneView(kind_in(lane), ()) for lane in backlog.lanes()}
    with counted() as asked:
        chosen = promotions(backlog, lanes, {lane: facts.of(lane) for lane in lanes}, 10, NOW)
    assert [entry.name.id for entry in chosen] == ["open"]
    assert max(asked.values()) <= 2


def idle_calls(closed: str, count: int) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """The calls and the questions of ten steps of a leader with so many tasks behind a closed limit."""
    pool = Pool(settings=SETTINGS if closed == "rate" else "[limits.llm]\nmax = 2\n")
    if closed == "quota":
        pool.cluster.fs.write("control/close.llm.x.json", b"", durable=False)
        pool.turn(pool.leader)
    pool.admit({"id": f"t{number}", "uses": ["llm"]} for number in range(count))
    for _ in range(10):
        pool.turn(pool.leader, pool.worker)
    calls = calls_of(pool.leader)
    with counted() as asked:
        for _ in range(10):
            pool.turn(pool.leader)
    return calls.calls, asked


@pytest.mark.parametrize("closed", CLOSED)
def test_a_leader_makes_no_call_for_tasks_behind_a_closed_limit(closed: str) -> None:
    (few, asked_few), (many, asked_many) = idle_calls(closed, 20), idle_calls(closed, 2000)
    assert sum(many.values()) <= sum(few.values()) + 2
    assert sum(asked_many.values()) <= sum(asked_few.values()) + 2


def test_an_admission_beside_many_lanes_asks_for_no_lane_unless_its_task_uses_a_limit() -> None:
    resources = Resources(load_settings(SETTINGS.encode(), "spool.toml"))
    assert resources.shared("type=a") == frozenset()
    assert resources.shared(LANE) is resources.shared(LANE), "worked out once"
    backlog = Backlog(lambda _: Parent.UNKNOWN)
    for number in range(1000):
        lane = f"type=a,cpu={number + 1}"
        backlog.add(Entry(name(f"t{number}", micros=number + 1).encode(), lane, NO_CONDITIONS), NOW)
    assert not backlog.any_lane(lambda lane: "use=" in lane)
    backlog.add(Entry(name("own", micros=5).encode(), LANE, NO_CONDITIONS), NOW)
    assert backlog.any_lane(lambda lane: "use=" in lane)
