"""What an attempt cost is a finite number of 0 or more, and every field that does not count is named with the fix.

Generator: every field of `Figures` gets every kind of wrong value, and values drawn by chance. What is not in the
figures as it was written must be in the faults, and nothing else may be.
"""

import json
import math
import random
from dataclasses import fields
from typing import Any

import pytest

from spoold.rules.attempts.reported_figures import NONE, PROGRESS, SHOWN, Figures, Quota, faults_in, figures_in

FILE = "SPOOL_RESULT_FILE"
NAMES = tuple(field.name for field in fields(Figures))
WRONG: tuple[Any, ...] = (
    "5", "soon", "", True, False, -1e13, 1e13, 1e308, 10**18, -(10**18), math.inf, -math.inf, math.nan, [], {}, [7],
    [[]], {"limit": 7}, {"limit": "a b/c"}, {"limit": "x", "retry_after_s": "5"}, {"limit": "x", "until": 7},
    {"limit": "x", "until": "2026-01-01"}, ["a", 7], ["a", ""], ["a" * 501], [None],
    [str(n) for n in range(1001)], "a" * 5000,
)  # fmt: skip
# Right for a field, so that a generator that called everything wrong would be found.
RIGHT: dict[str, tuple[Any, ...]] = {
    "tokens_used": (0, 5.7, 10**12),
    "cost_usd": (0, 0.5),
    "retry_after_s": (0, -5, 1e12, -1e12),
    "quota": ({"limit": "x"}, {"limit": "x", "retry_after_s": -3}, {"limit": "x", "until": "2026-01-01T00:00:00Z"}),
    "changed_files": ([], ["a"], ["./a//b", "c"]),
    "not_here": ("task", "type"),
}


def taken(name: str, value: Any) -> bool:
    """Whether the figures hold all that the value says, by what they hold and not by how it is judged."""
    found = getattr(figures_in({name: value}), name)
    if name == "changed_files":
        whole = isinstance(value, list) and all(isinstance(one, str) and one.strip("./") for one in value)
        return whole and {"/".join(p for p in one.split("/") if p not in ("", ".")) for one in value} == {*found}
    return isinstance(found, Quota) if name == "quota" else found is not None and found == value


def chance(draw: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    kind = draw.randrange(7 if depth < 3 else 5)
    if kind == 5:
        return [chance(draw, depth + 1) for _ in range(draw.randrange(3))]
    if kind == 6:
        names = draw.sample(["limit", "until", "retry_after_s", "x"], draw.randrange(3))
        return {name: chance(draw, depth + 1) for name in names}
    return [None, draw.random() < 0.5, draw.uniform(-2, 2) * 10 ** draw.randrange(16), draw.randrange(9), "x y"][kind]


def check(name: str, value: Any) -> None:
    """A value counts as it stands, or is named: the file, the field, the value and the fix."""
    told = faults_in({"answer": 1, name: value}, FILE)
    assert bool(told) == (value is not None and not taken(name, value)), (name, value, told)
    for fault in told:
        assert fault.file == FILE
        assert fault.field.partition("[")[0] == name
        assert str(fault).startswith(f"{FILE}: {fault.field}: is ")
        assert fault.mend in str(fault).partition(" Fix: ")[2]
        assert len(str(fault)) < 500


@pytest.mark.parametrize("name", NAMES)
def test_each_field_counts_as_it_stands_or_is_named(name: str) -> None:
    """Names-b: a wrong retry_after_s, quota or list of files was dropped without a word."""
    for value in (None, *WRONG, *(one for right in RIGHT.values() for one in right)):
        check(name, value)
    assert all(taken(name, value) for value in RIGHT[name])
    draw = random.Random(f"25 {name}")
    for _ in range(500):
        check(name, chance(draw))


def test_all_wrong_fields_of_a_result_are_named_at_once() -> None:
    told = faults_in(dict.fromkeys(NAMES, "x" * 5000), FILE)
    assert [fault.field for fault in told] == list(NAMES)
    assert all(f"{'x' * (SHOWN - 1)}…" in str(fault) for fault in told)


def test_of_a_progress_report_the_fields_are_named_that_would_have_counted() -> None:
    said = {"tokens_used": "5", "cost_usd": "6", "served": "yes", "quota": 7}
    assert [fault.field for fault in faults_in(said, "SPOOL_PROGRESS_FILE", PROGRESS)] == [*PROGRESS]
    assert [fault.field for fault in faults_in(said, "SPOOL_PROGRESS_FILE", ("cost_usd",))] == ["cost_usd"]
    assert faults_in({"served": False, "cost_usd": 6}, "SPOOL_PROGRESS_FILE", PROGRESS) == []
    assert faults_in("half done", "SPOOL_PROGRESS_FILE", PROGRESS) == []


@pytest.mark.parametrize("result", [None, "text", [1], {}, {"answer": 3}, {"tokens_used": None}])
def test_most_results_say_nothing_beside_their_output(result: Any) -> None:
    assert (figures_in(result), faults_in(result, FILE)) == (NONE, [])


def test_figures_are_kept_as_they_are() -> None:
    said = {"tokens_used": 5.7, "cost_usd": 0, "retry_after_s": -5}
    assert figures_in(json.loads(json.dumps(said))) == Figures(5.7, 0, -5)


@pytest.mark.parametrize("value", ["5", True, -0.5, 1e308, 1e13, math.inf, math.nan, [], {}])
def test_what_is_no_count_is_told_and_left_out(value: Any) -> None:
    said = {"tokens_used": 3, "cost_usd": value}
    assert figures_in(said) == Figures(3)
    (fault,) = faults_in(said, FILE)
    assert fault.told().startswith(f"{FILE}: cost_usd: is {value!r}, which is no number from 0 to 1,000,000,000,000,")
