"""What is said of pace and of what went wrong: nothing stale, nothing foretold that was not seen."""

from __future__ import annotations

from spoold.protocol.snapshot import Rates
from spoold.rules.cluster.throughput import Left, Tally, Tempo

LEFT = Left(tasks=10, slots=2)


def looks(tempo: Tempo, *counts: tuple[float, int, int], left: Left = LEFT, working: bool = True) -> Rates:
    """The rates at the last of several looks: (at, completed, failed)."""
    return [tempo.rates(at, completed, failed, left, working=working) for at, completed, failed in counts][-1]


def test_a_rate_is_over_at_least_a_minute_and_an_end_over_what_was_seen() -> None:
    rates = looks(Tempo(), (0, 100, 7), (30, 106, 8))
    assert (rates.completed_per_min, rates.failed_per_min) == (6.0, 1.0)
    assert (rates.eta_s, rates.eta_unknown) == (50.0, "")


def test_what_nothing_has_confirmed_for_two_minutes_is_no_rate() -> None:
    tempo = Tempo()
    assert looks(tempo, (0, 0, 0), (60, 6, 2), (179, 6, 2)).completed_per_min > 0
    rates = looks(tempo, (180, 6, 2))
    assert (rates.completed_per_min, rates.failed_per_min, rates.eta_s) == (0, 0, None)
    assert rates.eta_unknown == "no task has completed lately"


def test_old_looks_are_forgotten() -> None:
    tempo = Tempo()
    rates = looks(tempo, (0, 0, 0), (10, 600, 0), (200, 601, 0), (310, 607, 0), (400, 608, 0))
    assert rates.completed_per_min == round(7 / (200 / 60), 2)


def test_too_few_samples_foretell_nothing() -> None:
    assert looks(Tempo(), (0, 0, 0), (60, 4, 0)).eta_unknown == "too few tasks have completed lately"
    many = Left(tasks=10, slots=24)
    assert looks(Tempo(), (0, 0, 0), (60, 23, 0), left=many).eta_s is None
    assert looks(Tempo(), (0, 0, 0), (60, 24, 0), left=many).eta_s == 25.0


def test_the_time_before_the_work_began_says_nothing_of_its_pace() -> None:
    tempo = Tempo()
    looks(tempo, (0, 0, 0), (250, 0, 0), working=False)
    rates = looks(tempo, (251, 0, 0), (260, 10, 0))
    assert rates.eta_s == 10.0


def test_no_end_is_foretold_for_what_cannot_run() -> None:
    for left, why in (
        (Left(10, unservable=3, slots=2), "no worker can run 3 of 10 tasks"),
        (Left(1, unservable=1, slots=2), "no worker can run 1 of 1 task"),
        (Left(10, held="tasks are paused", unservable=3), "tasks are paused"),
    ):
        rates = looks(Tempo(), (0, 0, 0), (60, 60, 0), left=left)
        assert (rates.eta_s, rates.eta_unknown) == (None, why)
        assert rates.completed_per_min == 60


def test_no_end_is_foretold_while_all_that_is_left_waits_for_something_else() -> None:
    """A task whose `not_before` is an hour away was to end in about 0 s, at the pace of those before it."""
    tempo = Tempo()
    looks(tempo, (0, 0, 0), (50, 60, 0))
    rates = looks(tempo, (60, 60, 0), left=Left(1, slots=2), working=False)
    assert (rates.eta_s, rates.eta_unknown) == (None, "no task is ready or runs")


def test_nothing_left_needs_no_end() -> None:
    rates = looks(Tempo(), (0, 0, 0), (60, 60, 0), left=Left())
    assert (rates.eta_s, rates.eta_unknown) == (None, "")


def test_archived_tasks_that_are_deleted_make_no_negative_rate() -> None:
    assert looks(Tempo(), (0, 100, 9), (10, 101, 10), (20, 50, 2)).completed_per_min == 0


def test_causes_are_counted_from_what_nodes_say_more() -> None:
    tally = Tally()
    tally.hear(0, "old", 40, {"TIMEOUT": 100})  # of before this leader's time
    tally.hear(0, "new", 0, {"STALLED": 1})
    tally.hear(5, "old", 41, {"TIMEOUT": 103, "STALLED": 1})
    tally.hear(20, "new", 7, {"STALLED": 3})
    tally.ended(30, {"WORKER_DIED": 1})
    tally.rejected(30, {"is empty.": 2})
    recent = tally.recent(30)
    assert list(recent.failed_attempts.items()) == [("STALLED", 4), ("TIMEOUT", 3), ("WORKER_DIED", 1)]
    assert (recent.over_s, recent.rejections) == (600, {"is empty.": 2})


def test_causes_age_out_and_are_few() -> None:
    tally = Tally()
    tally.ended(0, {f"C{number}": 1 for number in range(9)})
    assert len(tally.recent(600).failed_attempts) == 8
    assert tally.recent(601).failed_attempts == {}
    tally.ended(601, {})
    assert tally.recent(601).failed_attempts == {}


def test_a_node_that_left_and_one_that_comes_under_its_name_are_counted_anew() -> None:
    tally = Tally()
    tally.hear(0, "w", 0, {"TIMEOUT": 5})
    tally.forget("w")
    tally.forget("w")
    tally.hear(1, "w", 0, {"TIMEOUT": 2})
    assert tally.recent(1).failed_attempts == {"TIMEOUT": 7}
