"""What moves to the archive: the old and the too many, oldest first."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.tree.retention import due


def test_nothing_is_due_that_is_young_and_few() -> None:
    assert due({}, 100, 10, 0) == []
    assert due({"a": 95, "b": 99}, 100, 10, 2) == []


def test_the_old_are_due() -> None:
    assert due({"a": 80, "b": 90, "c": 95}, 100, 10, 10) == ["a", "b"]


def test_the_too_many_are_due_oldest_first_even_if_young() -> None:
    assert due({"a": 97, "b": 98, "c": 99}, 100, 10, 1) == ["a", "b"]


@given(st.lists(st.floats(0, 100), max_size=30).map(sorted), st.floats(0, 100), st.integers(0, 30))
def test_what_stays_is_young_and_no_more_than_may_be_kept(since: list[float], max_age_s: float, keep: int) -> None:
    seen = {str(number): moment for number, moment in enumerate(since)}
    gone = due(seen, 100, max_age_s, keep)
    assert gone == list(seen)[: len(gone)]
    assert len(seen) - len(gone) <= keep
    assert all(100 - seen[name] < max_age_s for name in list(seen)[len(gone) :])
    needed = [name for name in gone if 100 - seen[name] < max_age_s]
    assert len(seen) - len(gone) == keep or not needed
