"""What an attempt cost is a finite number of 0 or more, or it is said that it is none."""

import math
from typing import Any

import pytest

from spoold.rules.attempts.figures import NONE, Figures, figures_in


@pytest.mark.parametrize(
    "result", [None, "text", [1], {}, {"answer": 3}, {"tokens_used": None, "retry_after_s": "soon"}]
)
def test_most_results_say_nothing_beside_their_output(result: Any) -> None:
    assert figures_in(result) == (NONE, None)


def test_figures_are_kept_as_they_are() -> None:
    said = {"tokens_used": 5.7, "cost_usd": 0, "retry_after_s": -5}
    assert figures_in(said) == (Figures(5.7, 0, -5), None)


@pytest.mark.parametrize("value", ["5", True, -0.5, 1e308, 1e13, math.inf, math.nan, [], {}])
def test_what_is_no_count_is_told_and_left_out(value: Any) -> None:
    figures, wrong = figures_in({"tokens_used": 3, "cost_usd": value})
    assert figures == Figures(3)
    assert wrong == "has a cost_usd that is no number from 0 to 1,000,000,000,000, so it counts as unknown"


@pytest.mark.parametrize("rest", [True, 1e13, math.inf, math.nan, "5"])
def test_a_rest_that_is_no_number_is_not_taken(rest: Any) -> None:
    assert figures_in({"retry_after_s": rest}) == (NONE, None)
