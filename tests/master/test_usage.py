"""Units are counted by resource, and what is in doubt is counted apart."""

from __future__ import annotations

from spoold.master.state.limit_usage import Usage
from spoold.rules.gates.resources import UNKNOWN, Capacity

CAPACITY = {"type:a": Capacity(2, "type a", "-"), "anthropic": Capacity(9, "anthropic", "-", most=3)}


def test_moves_of_a_step_show_in_the_stock_at_once() -> None:
    usage = Usage()
    usage.begin(CAPACITY, [])
    stock = usage.stock
    usage.take({"type:a": 1, "anthropic": 2}, 3)
    usage.give_back({"type:a": 1, "anthropic": 2})
    assert (stock.used["type:a"], stock.used["anthropic"]) == (2, 4)
    assert list(usage.in_use()) == [("anthropic", 4), ("type:a", 2)]
    assert stock.short_of({"type:a": 1}) == "type:a"


def test_a_task_of_unknown_type_counts_for_the_most_of_everything_until_it_is_known() -> None:
    usage = Usage()
    usage.begin(CAPACITY, [{"type:a": 1}, {UNKNOWN: 1}])
    assert (usage.stock.doubtful["type:a"], usage.stock.doubtful["anthropic"]) == (2, 3)
    usage.take({UNKNOWN: 1})
    assert (usage.stock.doubtful["type:a"], usage.stock.doubtful["anthropic"]) == (3, 6)
    assert list(usage.in_use()) == [("", 1)]
    usage.begin(CAPACITY, [])
    assert not usage.stock.doubtful
    assert list(usage.in_use()) == []
