"""What is counted: how much a task uses, how much there is, and who has to wait or to go back for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.toml_file import load_settings
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.limit import GATE, judge
from spoold.rules.gates.verdicts import PASS, Wait
from spoold.rules.scheduling.resources import Capacity, Stock, Uses, capacities, kind_counted, stock_seen, uses_of

LLM = Capacity(5, "anthropic", "[limits.anthropic] max", most=2)


def stock(used: int, doubtful: int = 0) -> Stock:
    return Stock({"anthropic": LLM}, {"anthropic": used}, {"anthropic": doubtful})


def test_a_task_uses_one_unit_of_its_type() -> None:
    assert uses_of("mail") == {"type:mail": 1}
    assert [kind_counted(name) for name in (*uses_of("mail"), *uses_of(""), "anthropic")] == ["mail", "", None]


def test_the_capacity_of_a_type_is_its_max_concurrent() -> None:
    settings = load_settings(b"[types.mail]\nmax_concurrent = 2\n[types.post]\ntimeout = 5\n", "spool.toml")
    assert capacities(settings) == {"type:mail": Capacity(2, "type mail", "[types.mail] max_concurrent")}


@pytest.mark.parametrize(
    ("used", "doubtful", "uses", "short", "beyond"),
    [
        (3, 0, {"anthropic": 2}, None, 0),
        (4, 0, {"anthropic": 2}, "anthropic", 0),
        (4, 0, {"anthropic": 1}, None, 0),
        (4, 1, {"anthropic": 1}, "anthropic", 0),
        (5, 9, {"anthropic": 1}, "anthropic", 0),
        (6, 0, {"anthropic": 2}, "anthropic", 1),
        (8, 0, {"anthropic": 2}, "anthropic", 2),
        (8, 0, {"anthropic": 1, "type:a": 1}, "anthropic", 3),
        (8, 0, {"type:a": 1}, None, 0),
        (8, 0, {}, None, 0),
    ],
)
def test_there_is_enough_or_somebody_waits_or_goes_back(
    used: int, doubtful: int, uses: Uses, short: str | None, beyond: int
) -> None:
    assert stock(used, doubtful).short_of(uses) == short
    assert stock(used, doubtful).beyond(uses) == beyond


@given(st.integers(0, 9), st.integers(0, 30), st.integers(1, 4))
def test_when_as_many_went_back_as_are_beyond_nothing_is_over_and_one_fewer_would_not_do(
    units: int, used: int, each: int
) -> None:
    there = {"x": Capacity(units, "x", "x")}
    back = Stock(there, {"x": used}).beyond({"x": each})
    assert used - back * each <= units
    assert not back or used - (back - 1) * each > units


def test_the_limit_names_the_resource_that_is_used_up_and_where_it_is_set() -> None:
    facts = TypeFacts(uses={"type:a": 1, "anthropic": 2}, stock=stock(4, 1))
    verdict = judge("a", facts)
    words = "anthropic runs at its limit: 4 of [limits.anthropic] max = 5; tasks in doubt count as well: 1"
    assert verdict == Wait("limit", words)
    assert GATE.change is not None
    change = GATE.change(Held("t", "a", facts), verdict, ())
    assert change == "it goes on when one of them ends; or raise [limits.anthropic] max in spool.toml"
    assert judge("a", TypeFacts(uses={"anthropic": 1}, stock=stock(4))) == PASS


def test_a_snapshot_shows_what_is_in_use_and_what_is_in_doubt() -> None:
    there = {"type:a": Capacity(2, "type a", "-"), "anthropic": LLM}
    seen = stock_seen(there, {"a": {"active": 1}, "b": {"active": 3, "waiting": 9}, "": {"active": 2}})
    assert seen.used == {"type:a": 1, "type:b": 3, "": 2}
    assert seen.doubtful == {"type:a": 2, "anthropic": 4}, "a task of unknown type counts for the most it may use"
    assert stock_seen(there, {}).doubtful == {"type:a": 0, "anthropic": 0}
