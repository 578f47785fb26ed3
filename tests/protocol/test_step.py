"""How far a task has come: names that say the order, and a sum that says whether all of it is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import codec
from spoold.protocol.errors import BadName
from spoold.protocol.step import Step, StepName, directory, parse_step, sum_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_that_was_written_whole_fits_its_sum(value: object) -> None:
    data = codec.dump({"sum": sum_of(value), "value": value})
    assert codec.load_model(Step, data, "x").whole


def test_a_value_that_was_not_does_not() -> None:
    assert not Step(sum=sum_of([1, 2]), value=[1]).whole
    assert sum_of({"a": 1, "b": 2}) == sum_of({"b": 2, "a": 1})


def test_the_highest_attempt_counts_and_then_the_highest_number() -> None:
    names = ["9.1.w.json", "10.1.w.json", "2.2.w.json"]
    assert [name.encode() for name in sorted(filter(None, map(parse_step, names)))] == names


@pytest.mark.parametrize("name", ["1.w.json", "01.1.w.json", "1.1.W.json", "1.1.w.json.new"])
def test_any_other_name_is_none(name: str) -> None:
    assert parse_step(name) is None


def test_a_name_reads_back() -> None:
    assert parse_step(StepName(1, 2, "w").encode()) == StepName(1, 2, "w")
    with pytest.raises(BadName):
        StepName(1, 2, "W").encode()
    assert directory("Build") == "steps/build"
