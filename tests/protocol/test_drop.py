"""The names of drops: what we write is read back, and a promise counts only for the id that the name holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import ID, batch_drop, concerns_us, id_in, is_id, is_unique, task_drop

micros = st.integers(0, 36**10 - 1)
ids = st.from_regex(ID, fullmatch=True).filter(is_id)


@given(micros, ids, st.booleans())
def test_a_name_of_ours_tells_the_id_and_whether_it_is_unique(when: int, task_id: str, unique: bool) -> None:
    drop = task_drop(when, task_id, unique=unique)
    assert id_in(drop) == task_id
    assert is_unique(drop, task_id) == unique
    assert not is_unique(drop, f"{task_id}x")
    assert concerns_us(drop)


@given(micros, micros, ids, ids)
def test_names_sort_by_age(earlier: int, later: int, one: str, other: str) -> None:
    first, second = sorted((earlier, later))
    if first < second:
        assert task_drop(first, one, unique=True) < task_drop(second, other, unique=True)


@pytest.mark.parametrize(
    "drop",
    [
        "build@unique.json",  # no time before the id: whose name is that?
        "0abcdefghi.build@other.json",
        "0abcdefghi.build@unique.jsonl",
        "0abcdefghi.@unique.json",
        "0abcdefghi.b@d@unique.json",
        "0ABCDEFGHI.build@unique.json",
        "0abcdefghi.build@unique.json.json",
    ],
)
def test_other_names_promise_nothing(drop: str) -> None:
    assert id_in(drop) is None
    assert not is_unique(drop, "build")


def test_an_id_may_end_like_the_promise() -> None:
    assert id_in("0abcdefghi.build.unique.json") == "build.unique"
    assert not is_unique("0abcdefghi.build.unique.json", "build.unique")


def test_a_batch_says_nothing_of_ids() -> None:
    assert id_in(batch_drop(7, "nightly")) is None
    assert batch_drop(7, "nightly") == "0000000007.batch-nightly.whole.jsonl"
