"""A machine that cannot start tasks is asked again ever more seldom, and never given up."""

from spoold.rules.workers.readiness import FIRST_S, MOST_S, pause_s


def test_each_pause_is_twice_the_one_before_up_to_a_bound() -> None:
    assert [pause_s(failed) for failed in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert (pause_s(1), pause_s(10**6)) == (FIRST_S, MOST_S)
