"""Who gets back the units that it lent while it waited."""

from __future__ import annotations

from collections.abc import Mapping

import hypothesis.strategies as st
from hypothesis import given

from spoold.rules.gates import limit_gates
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.gate import PASS, Wait
from spoold.rules.gates.limit_gates import lends, regained, told_of_lent
from spoold.rules.gates.resources import Capacity, Shares, Stock

A, B, CLASS = "limit:a", "limit:b", "class:c"


def stock(used: Mapping[str, int], *, shares: Shares | None = None, doubtful: int = 0, units: int = 2) -> Stock:
    capacity = {name: Capacity(units, name, f"[{name}]") for name in (A, B)}
    return Stock(capacity, used, {A: doubtful} if doubtful else {}, shares=shares)


def test_a_task_lends_only_what_is_counted() -> None:
    assert lends({A: 1}, [A])
    assert lends({CLASS: 1}, [])
    assert not lends({"type:x": 1}, [A])


def test_all_of_its_units_come_back_or_none_and_what_it_lacks_is_kept_for_it() -> None:
    answer = regained([("p", {A: 1, B: 1})], stock({A: 2, B: 1}))
    assert (answer.back, answer.wanted) == ((), {A: 1})
    assert regained([("p", {A: 1, B: 1})], stock({A: 1, B: 1})).back == ("p",)
    assert regained([("p", {"limit:gone": 9, "type:x": 1})], stock({})).back == ("p",)


def test_no_later_one_takes_what_an_earlier_one_lacks() -> None:
    answer = regained([("two", {A: 2}), ("one", {A: 1}), ("other", {B: 1})], stock({A: 1}))
    assert (answer.back, answer.wanted) == (("other",), {A: 2})
    assert regained([("first", {A: 1}), ("second", {A: 1})], stock({A: 1})).back == ("first",)


def test_units_in_doubt_are_not_given_back() -> None:
    assert regained([("p", {A: 1})], stock({A: 1}, doubtful=1)).back == ()


def test_one_that_is_alone_goes_on_though_the_limit_is_smaller_by_now() -> None:
    assert regained([("p", {A: 2}), ("q", {A: 2})], stock({}, units=1)).back == ("p",)
    assert regained([("p", {A: 2})], stock({A: 1}, units=1)).wanted == {A: 1}


def test_a_class_gives_its_own_slots_back_and_one_always() -> None:
    shares = Shares(total=4, slots={"c": 2, "d": 2}, borrow=frozenset())
    ask = [("p", {CLASS: 1})]
    assert regained(ask, stock({CLASS: 1}, shares=shares)).back == ("p",)
    assert regained(ask, stock({CLASS: 2}, shares=shares)).wanted == {CLASS: 1}
    assert regained(ask, stock({CLASS: 2})).back == ("p",), "without classes nothing is counted"
    none = Shares(total=0, slots={"c": 0}, borrow=frozenset())
    assert regained(ask, stock({}, shares=none)).back == ("p",), "its worker drains"
    borrows = Shares(total=4, slots={"c": 2, "d": 2}, borrow=frozenset({"c"}))
    assert regained(ask, stock({CLASS: 2}, shares=borrows)).back == ("p",)


def test_a_ready_task_waits_for_those_that_want_theirs_back_and_is_told_so() -> None:
    due = Stock({A: Capacity(2, "limit a", "[limits.a] max")}, {A: 1}, wanted=frozenset({A}), due={A: 1})
    verdict = limit_gates.LIMIT_GATE.judge("t", TypeFacts(uses={A: 1}, stock=due))
    assert isinstance(verdict, Wait)
    assert verdict.reason.endswith("tasks that lent units while they waited want them back first: 1")
    shares = Shares(total=4, slots={"c": 2}, borrow=frozenset())
    of_class = Stock(used={CLASS: 1}, shares=shares, wanted=frozenset({CLASS}), due={CLASS: 1})
    verdict = limit_gates.CLASS_GATE.judge("t", TypeFacts(uses={CLASS: 1}, stock=of_class))
    assert isinstance(verdict, Wait)
    assert verdict.reason.endswith("tasks that lent theirs while they waited want one back first: 1")
    free = Stock(used={CLASS: 1}, shares=shares)
    assert limit_gates.CLASS_GATE.judge("t", TypeFacts(uses={CLASS: 1}, stock=free)) is PASS


def test_ready_tasks_give_back_what_is_due() -> None:
    there = {A: Capacity(2, "limit a", "")}
    assert Stock(there, {A: 2}, due={A: 1, CLASS: 1}).over() == {A: 1, CLASS: 1}
    assert Stock(there, {A: 3}, due={A: 1}).over() == {A: 2}
    assert Stock(there, {A: 1}).over() == {}


def test_a_person_is_told_what_it_wants_back() -> None:
    seen = stock({A: 1, CLASS: 3}, doubtful=1)
    assert list(told_of_lent({A: 2, CLASS: 1, "quota:a": 1, "type:t": 1}, seen)) == [
        "2 of limit:a, with 2 of [limit:a] = 2 in use",
        "a slot of class c, of which 3 are in use",
    ]


uses = st.dictionaries(st.sampled_from([A, B]), st.integers(1, 2), min_size=1)


@given(st.lists(uses, max_size=6), st.dictionaries(st.sampled_from([A, B]), st.integers(0, 2)))
def test_never_more_than_there_is_and_somebody_always_goes_on(
    asking: list[dict[str, int]], used: dict[str, int]
) -> None:
    asked = [(str(number), wants) for number, wants in enumerate(asking)]
    answer = regained(asked, stock(used))
    taken = dict(used)
    for key, wants in asked:
        for name, units in wants.items() if key in answer.back else ():
            taken[name] = taken.get(name, 0) + units
    assert all(units <= 2 for units in taken.values())
    if asked and not any(used.values()):
        assert answer.back, "nobody uses anything, and nobody goes on"
    for name in answer.wanted:
        assert used.get(name) or any(name in wants for key, wants in asked if key in answer.back)
