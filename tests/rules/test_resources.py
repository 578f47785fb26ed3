"""What is counted: how much a task uses, how much there is, and who has to wait or to go back for it."""

from __future__ import annotations

import pytest

from spoold.protocol.toml_file import load_settings
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import PASS, Wait
from spoold.rules.gates.limit_gates import LIMIT_GATE, judge_limit
from spoold.rules.gates.resources import (
    UNKNOWN,
    Capacity,
    Resources,
    Stock,
    Uses,
    capacities,
    kind_counted,
    stock_seen,
)

LLM = Capacity(5, "limit anthropic", "[limits.anthropic] max", most=2)


def stock(used: int, doubtful: int = 0) -> Stock:
    return Stock({"limit:anthropic": LLM}, {"limit:anthropic": used}, {"limit:anthropic": doubtful})


def resources(text: str) -> Resources:
    return Resources(load_settings(text.encode(), "spool.toml"))


def test_a_task_uses_one_unit_of_its_type() -> None:
    plain = resources("")
    assert plain.uses("type=mail") == plain.running("type=mail") == {"type:mail": 1}
    assert plain.starts("type=mail") == {}
    assert plain.uses("") == {UNKNOWN: 1}
    assert [kind_counted(name) for name in ("type:mail", UNKNOWN, "limit:anthropic")] == ["mail", "", None]


LIMITS = """
[limits.llm]
max = 5
rate = {count = 9, per_s = 60}
[limits.git]
rate = {count = 2, per_s = 1}
[limits.free]
max = 1
per = "worker"
[types.review]
uses = {llm = 2}
"""


def test_a_task_uses_the_limits_that_it_or_its_type_says_and_its_own_word_counts() -> None:
    all_of_them = resources(LIMITS)
    typed = {"type:review": 1, "limit:llm": 2, "rate:llm": 2, "quota:llm": 1}
    assert all_of_them.uses("type=review") == typed
    assert all_of_them.uses("type=review,use=git") == {**typed, "rate:git": 1, "quota:git": 1}
    assert all_of_them.uses("type=review,use=llm=3")["limit:llm"] == 3
    assert all_of_them.uses("type=mail,use=free") == {"type:mail": 1, "quota:free": 1}, "each worker counts its own"
    assert all_of_them.uses("type=mail,use=gone") == {"type:mail": 1}, "a limit that was taken out holds nothing"
    assert all_of_them.running("type=review") == {"type:review": 1, "limit:llm": 2}
    assert all_of_them.starts("type=review,use=git") == {"rate:llm": 2, "quota:llm": 1, "rate:git": 1, "quota:git": 1}
    assert all_of_them.shared("type=review") == {"limit:llm", "rate:llm"}
    assert all_of_them.limited
    assert sorted(all_of_them.rates) == ["git", "llm"]
    assert all_of_them.capacity == {
        "limit:llm": Capacity(5, "limit llm", "[limits.llm] max", most=5),
        "rate:llm": Capacity(9, "limit llm", "[limits.llm] rate.count", most=0),
        "rate:git": Capacity(2, "limit git", "[limits.git] rate.count", most=0),
    }


def test_nobody_takes_the_units_for_which_another_waits() -> None:
    there = {"limit:a": Capacity(3, "limit a", "-"), "rate:a": Capacity(9, "limit a", "-")}
    free = Stock(there, {"limit:a": 2}, wanted={"limit:a"})
    assert free.short_of({"limit:a": 1}) == "limit:a"
    assert free.lacking({"limit:a": 2, "rate:a": 2}) == {"limit:a"}
    assert Stock(there, {"rate:a": 9}).lacking({"limit:a": 1, "rate:a": 1}) == {"rate:a"}
    assert Stock(there).lacking({"limit:a": 4}) == set(), "more than there is: it would wait for ever"


def test_the_capacity_of_a_type_is_its_max_concurrent() -> None:
    settings = load_settings(b"[types.mail]\nmax_concurrent = 2\n[types.post]\ntimeout = 5\n", "spool.toml")
    assert capacities(settings) == {"type:mail": Capacity(2, "type mail", "[types.mail] max_concurrent")}


@pytest.mark.parametrize(
    ("used", "doubtful", "uses", "short"),
    [
        (3, 0, {"limit:anthropic": 2}, None),
        (4, 0, {"limit:anthropic": 2}, "limit:anthropic"),
        (4, 0, {"limit:anthropic": 1}, None),
        (4, 1, {"limit:anthropic": 1}, "limit:anthropic"),
        (8, 0, {"limit:anthropic": 1, "type:a": 1}, "limit:anthropic"),
        (8, 0, {"type:a": 1}, None),
        (8, 0, {"quota:anthropic": 1}, None),
        (8, 0, {}, None),
    ],
)
def test_there_is_enough_or_somebody_waits(used: int, doubtful: int, uses: Uses, short: str | None) -> None:
    assert stock(used, doubtful).short_of(uses) == short


@pytest.mark.parametrize(("used", "over"), [(0, {}), (5, {}), (8, {"limit:anthropic": 3})])
def test_units_beyond_the_capacity_are_seen_and_doubt_is_not_beyond(used: int, over: dict[str, int]) -> None:
    assert stock(used, 9).over() == over


def test_the_limit_names_the_resource_that_is_used_up_and_where_it_is_set() -> None:
    facts = TypeFacts(uses={"type:a": 1, "limit:anthropic": 2}, stock=stock(4, 1))
    verdict = judge_limit("a", facts)
    words = (
        "limit anthropic runs at its limit: 4 of [limits.anthropic] max = 5, and the task uses 2; "
        "tasks in doubt count as well: 1"
    )
    assert verdict == Wait("limit", words)
    assert LIMIT_GATE.change is not None
    change = LIMIT_GATE.change(Held("t", "a", facts), verdict, ())
    assert change == "it goes on when one of them ends; or raise it: `spool config set limits.anthropic.max …`"
    assert judge_limit("a", TypeFacts(uses={"limit:anthropic": 1}, stock=stock(4))) == PASS


def test_a_task_that_uses_more_than_there_is_is_told_so() -> None:
    assert LIMIT_GATE.change is not None
    facts = TypeFacts(uses={"limit:anthropic": 6}, stock=stock(0))
    change = LIMIT_GATE.change(Held("t", "a", facts), Wait("limit", ""), ())
    assert change == "it uses more than there is: raise it: `spool config set limits.anthropic.max …`"
    gone = LIMIT_GATE.change(Held("t", "a", TypeFacts()), Wait("limit", ""), ())
    assert gone == "time"


def test_a_snapshot_shows_what_is_in_use_and_what_is_in_doubt() -> None:
    there = {"type:a": Capacity(2, "type a", "-"), "limit:anthropic": LLM}
    seen = stock_seen(there, {"type:a": 1, UNKNOWN: 2}, {"limit:anthropic": 1})
    assert seen.used["type:a"] == 1
    assert seen.doubtful == {"type:a": 2, "limit:anthropic": 5}, "one of unknown lane counts for the most it may use"
    assert stock_seen(there, {}, {}).doubtful == {"type:a": 0, "limit:anthropic": 0}
