"""What moves to the archive: the old and the too many, oldest first. What is deleted: what is too old."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.lifecycle import State
from spoold.protocol.settings import RetentionSettings
from spoold.rules.tree.archiving import LOOK_AGAIN_S, Stay, due, none_due_s, stay, too_old

SETTINGS = RetentionSettings(completed_s=100, failed_s=200, keep=7, archive_s=1000)


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


def test_what_failed_may_stay_for_another_time_than_what_completed() -> None:
    assert stay(State.COMPLETED, SETTINGS, clear_all=False) == Stay(100, 7)
    assert stay(State.FAILED, SETTINGS, clear_all=False) == Stay(200, 7)


def test_nothing_stays_when_somebody_asks_for_all_of_it() -> None:
    assert stay(State.FAILED, SETTINGS, clear_all=True) == Stay(0, 0)


def test_a_file_may_stay_until_it_is_older_than_its_limit() -> None:
    assert [too_old(age_s, 1000) for age_s in (0, 1000, 1000.5)] == [False, False, True]


def test_an_archive_rests_until_its_oldest_task_or_one_that_comes_is_due() -> None:
    assert none_due_s([], SETTINGS) == 800
    assert none_due_s([100, 900], SETTINGS) == 100


def test_an_archive_is_looked_through_now_and_then_since_clocks_can_be_set() -> None:
    assert none_due_s([0], RetentionSettings(archive_s=1e9)) == LOOK_AGAIN_S
