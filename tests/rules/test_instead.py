"""As which other types tasks may run while a limit of their own is closed: the lists, the lanes, and who goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.errors import BadName
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import LANE_MAX, Lane, kind_in, own_lane, parse_lane
from spoold.protocol.names import key_in
from spoold.protocol.request import Request, Verb
from spoold.protocol.settings import Settings
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import registry
from spoold.rules.gates.facts import NO_CONDITIONS, Known, LaneFacts, Parent
from spoold.rules.gates.registry import judge_type
from spoold.rules.gates.resources import Resources, Stock
from spoold.rules.scheduling import promotion
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.fallback_types import MOST, TYPES, Instead, goes_back, lanes_instead, lists_of
from spoold.rules.scheduling.promotion import LaneView, holdbacks, promotions
from spoold.rules.scheduling.waiting_task import Entry
from tests.rules.strategies import name

NOW = Now(1000.0, 1_770_000_000.0)
WORDS = st.from_regex(r"[a-z0-9]([a-z0-9_.-]{0,8}[a-z0-9_-])?", fullmatch=True)
SETTINGS = Settings.model_validate(
    {
        "limits": {"a": {}, "b": {"max": 2}},
        "types": {"coder": {"uses": ["a"]}, "coder-b": {"uses": ["b"]}},
    }
)
OWN, ON_B, ON_C = "type=coder", "type=coder-b,for=coder", "type=coder-c,for=coder"


@given(WORDS, WORDS, st.integers(0, 64), st.sampled_from(["", "gpu"]))
def test_a_lane_of_another_type_leads_back_to_its_own(own: str, other: str, mem: int, pool: str) -> None:
    lane = Lane(own, mem_mb=mem, pool=pool)
    there = lane.under(other)
    assert parse_lane(there.encode()) == there
    assert own_lane(there.encode()) == own_lane(lane.encode()) == lane.encode()
    assert (there.own_type, there.type) == (own, other)
    assert there.under(own) == lane


@pytest.mark.parametrize(
    "wrong",
    [
        "type=a,for=a",
        "type=a,for=",
        "type=a,run=command,for=b",
        "for=b,type=a",
        "type=a,for=b,class=c",
        "type=a,for=B",
    ],
)
def test_a_lane_has_one_spelling_and_only_handlers_take_tasks_of_another_type(wrong: str) -> None:
    assert parse_lane(wrong) is None
    assert own_lane(wrong) == wrong


def test_lists_of_several_workers_become_one_and_what_is_no_list_is_passed_over() -> None:
    first = Capabilities(instead={"coder": ("b", "coder", "no type", "B", "", "../x", "c"), "": ("b",), "x": ()})
    second = Capabilities(instead={"coder": ("c", "d", "b"), "other": ("coder",)})
    assert lists_of([first, second]) == {"coder": ("b", "c", "d"), "other": ("coder",)}
    long = Capabilities(instead={"coder": tuple(f"t{number}" for number in range(100))})
    assert len(lists_of([long, second])["coder"]) == MOST
    many = Capabilities(instead={f"t{number}": ("x",) for number in range(2 * TYPES)})
    assert len(lists_of([many, first])) == TYPES


def test_a_lane_that_would_have_too_long_a_name_is_left_out() -> None:
    long = Lane("coder", need=tuple(f"{letter}{'x' * 40}" for letter in "abcd"))
    assert len(long.encode()) < LANE_MAX
    with pytest.raises(BadName):
        long.under("t" * 48).encode()
    assert lanes_instead(long.encode(), {"coder": ("t" * 48, "b")}) == [long.under("b").encode()]
    assert lanes_instead("type=coder,run=command", {"coder": ("b",)}) == []
    assert lanes_instead(ON_B, {"coder-b": ("c",), "coder": ("c",)}) == [], "lists do not chain"


def lane_facts(*, closed: bool = True) -> LaneFacts:
    requests = (Request(Verb.CLOSE, "a", "1"),) if closed else ()
    resources = Resources(SETTINGS)
    return LaneFacts(Known(NOW.wall, SETTINGS, requests), resources, Stock(resources.capacity), {}, {})


def backlog_of(count: int) -> Backlog:
    backlog = Backlog(lambda task_id: Parent.UNKNOWN)
    for number in range(count):
        backlog.add(Entry(name(f"t{number}", micros=number + 1).encode(), OWN, NO_CONDITIONS), NOW)
    return backlog


def promote(backlog: Backlog, facts: LaneFacts, window: int = 10) -> dict[str, str]:
    """Which tasks go, and into which lane."""
    lanes = {lane: LaneView(kind_in(lane), ()) for lane in (OWN, ON_B, ON_C)}
    instead = Instead(lambda lane: [ON_B, ON_C] if lane == OWN else [])
    all_facts = {lane: facts.of(lane) for lane in lanes}
    chosen = promotions(backlog, lanes, all_facts, window, NOW, uses=Resources(SETTINGS).uses, instead=instead)
    return {entry.name.id: instead.taken.get(entry.file, entry.lane) for entry in chosen}


def test_tasks_fill_the_first_type_of_the_list_and_then_the_next_one() -> None:
    assert promote(backlog_of(4), lane_facts(), window=1) == {"t0": ON_B, "t1": ON_C}
    assert promote(backlog_of(4), lane_facts()) == {"t0": ON_B, "t1": ON_B, "t2": ON_C, "t3": ON_C}, "b has two units"
    assert promote(backlog_of(4), lane_facts(closed=False)) == dict.fromkeys(("t0", "t1", "t2", "t3"), OWN)


def test_however_many_wait_only_as_many_are_asked_about_as_go(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(kind: str, *args: object, **more: object) -> object:
        asked.append(kind)
        return judge_type(kind, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(promotion, "judge_type", counted)
    backlog = backlog_of(2000)
    assert len(promote(backlog, lane_facts(), window=3)) == 5, "two as b, three as c"
    assert len(asked) < 40
    assert len(list(backlog.items())) == 2000


def test_a_task_that_cannot_be_judged_as_another_type_keeps_nobody_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "groups", lambda conditions, facts: (("new", 1),))
    backlog = backlog_of(2)
    first = name("t0", micros=1).encode()

    def contain(task_key: str, judge: Callable[[], None]) -> tuple[str, bool] | None:
        if task_key == key_in(first):
            return "a bug of ours", True
        judge()
        return None

    backlog.contain = contain
    assert promote(backlog, lane_facts()) == {"t1": ON_B}
    assert [entry.file for entry, _ in backlog.refused()] == [first]


def test_ready_tasks_go_back_when_no_limit_of_their_own_is_closed() -> None:
    resources, ready = Resources(SETTINGS), {ON_B: [name("t0")], "type=coder-b": [name("b0")]}
    for closed in (True, False):
        facts = lane_facts(closed=closed)
        held = holdbacks(ready, {lane: facts.of(lane) for lane in ready}, resources)
        assert held == ([] if closed else [(ON_B, name("t0"))])
        assert goes_back(ON_B, resources, facts.of(ON_B).closed) is not closed
