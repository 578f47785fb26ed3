"""Medians, ratios and how figures are said: what every line of the table rests on."""

import pytest

from tools.benchmark.figure import Figure, Target, depth, joined, number, percentile, ratios


def test_a_figure_is_the_median_of_its_samples() -> None:
    assert Figure("p", "n", "s", (9.0, 1.0, 2.0)).value == 2.0
    assert Figure("p", "n", "s", (1.0, 2.0)).value == 1.5


def test_what_could_not_be_measured_has_no_value_and_does_not_hold() -> None:
    assert Figure("p", "n", "s", ()).value is None
    assert Figure("p", "n", "s", (), Target(1)).holds is False
    assert Figure("p", "n", "s", ()).holds is None


@pytest.mark.parametrize(
    ("target", "value", "holds"),
    [
        (Target(10), 10.0, True),
        (Target(10), 9.9, False),
        (Target(5, most=True), 4.9, True),
        (Target(5, most=True), 5.0, False),
    ],
)
def test_a_target_holds(target: Target, value: float, holds: bool) -> None:
    assert Figure("p", "n", "s", (value,), target).holds is holds


def test_targets_are_said() -> None:
    assert [str(Target(0.8)), str(Target(50, most=True))] == ["≥ 0.8", "< 50"]


def test_ratios_are_taken_round_by_round() -> None:
    assert ratios([10, 30], [5, 10]) == (2, 3)
    assert ratios([10, 30], [5]) == (2,)
    assert ratios([10], [0]) == ()


def test_a_percentile_is_a_sample_that_was_seen() -> None:
    samples = list(range(100, 0, -1))
    assert [percentile(samples, share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (0.01234, "0.0123"), (12.34, "12.3"), (1234.5, "1,230"), (98765.4, "98,800")]
)
def test_numbers_have_three_digits(value: float, said: str) -> None:
    assert number(value) == said


def test_backlogs_are_said_as_people_do() -> None:
    assert [depth(n) for n in (40, 1000, 10_000, 1_500, 1_000_000)] == ["40", "1k", "10k", "1500", "1M"]


def test_a_figure_comes_back_from_json_as_it_was() -> None:
    figure = Figure("p", "n", "ms", (1.0, 2.0), Target(5, most=True), "why", {"lost": 0.0}, {"tier": "call"})
    assert Figure.from_json(figure.as_json()) == figure
    assert figure.as_json()["holds"] is True


def test_what_several_calls_measured_is_joined_by_name() -> None:
    first = Figure("call", "a", "tasks/s", (1.0, 3.0), more={"lost": 1, "doubled": 0, "done": 7})
    again = Figure("call", "a", "tasks/s", (5.0,), more={"lost": 0, "doubled": 2, "done": 9})
    other = Figure("kill", "a", "tasks/s", (2.0,))
    both, alone = joined([first, other, again])
    assert (both.samples, both.value) == ((1.0, 3.0, 5.0), 3.0)
    assert both.more == {"lost": 1, "doubled": 2, "done": 7}
    assert alone == other
