"""How long attempts take: what workers say, what the leader makes of it, and what it foretells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import codec
from spoold.protocol.heartbeat import Lasted
from spoold.protocol.settings import Settings
from spoold.protocol.snapshot import Durations
from spoold.protocol.task import Task
from spoold.rules.attempts.durations import (
    ENOUGH,
    KEPT,
    KEPT_KINDS,
    KINDS,
    LAST,
    LEAST_S,
    Estimates,
    Lately,
    auto_s,
    eta_s,
    figures_of,
)
from spoold.rules.attempts.task_policy import timeout_s

seconds = st.floats(0, 1e6).map(lambda value: round(value, 3))


def test_a_worker_says_the_last_of_each_type_and_how_many_there_were() -> None:
    lately = Lately()
    for number in range(LAST + 5):
        lately.add("a", number + 0.00049)
    lately.add("b", 7)
    assert lately.said() == {
        "a": Lasted(n=LAST + 5, last=tuple(range(5, LAST + 5))),
        "b": Lasted(n=1, last=(7,)),
    }
    for number in range(KINDS - 1):
        lately.add(f"k{number}", 1)
    assert len(lately.said()) == KINDS
    assert "a" not in lately.said(), "of it none has ended for the longest time"


@given(st.lists(st.lists(seconds, max_size=30), max_size=8))
def test_the_leader_takes_each_duration_once_however_often_it_reads_a_beat(beats: list[list[float]]) -> None:
    lately, estimates, taken = Lately(), Estimates(), list[float]()
    for new in beats:
        for one in new:
            lately.add("a", one)
        estimates.hear("w1", lately.said())
        estimates.hear("w1", lately.said())
        taken += new[-LAST:]
    taken = taken[-KEPT:]
    assert estimates.now() == ({"a": figures_of(taken)} if taken else {})


def test_a_worker_that_starts_anew_counts_anew_and_one_that_is_gone_still_counts() -> None:
    estimates = Estimates()
    estimates.hear("w1", {"a": Lasted(n=2, last=(1, 1))})
    estimates.forget("w1")
    estimates.hear("w2", {"a": Lasted(n=2, last=(3, 3))})
    estimates.hear("w2", {"a": Lasted(n=1, last=(9,))})
    assert estimates.now() == {"a": Durations(n=4, mean_s=2, p95_s=3)}


def test_a_new_leader_goes_on_from_the_figures_before_until_it_has_as_many() -> None:
    estimates = Estimates()
    before = {"a": Durations(n=3, mean_s=10, p95_s=20), "gone": Durations(n=100, mean_s=1, p95_s=2)}
    estimates.begin(before)
    assert estimates.now() == before
    estimates.hear("w1", {"a": Lasted(n=2, last=(1, 1))})
    assert estimates.now() == before
    estimates.hear("w1", {"a": Lasted(n=3, last=(1, 1, 1))})
    assert estimates.now() == before | {"a": Durations(n=3, mean_s=1, p95_s=1)}


def test_no_number_of_types_is_kept_without_a_bound() -> None:
    estimates = Estimates()
    for number in range(KEPT_KINDS + 5):
        estimates.hear("w1", {f"k{number}": Lasted(n=1, last=(1,))})
    assert len(estimates.now()) == KEPT_KINDS


@given(st.lists(seconds, min_size=1, max_size=KEPT))
def test_the_figures_are_of_what_was_measured(durations: list[float]) -> None:
    found = figures_of(durations)
    assert found.n == len(durations)
    assert min(durations) - 0.001 <= found.mean_s <= max(durations) + 0.001
    assert sum(one <= found.p95_s for one in durations) >= 0.95 * len(durations)
    assert found.p95_s in durations


def test_auto_is_one_and_a_half_times_p95_once_enough_is_known() -> None:
    assert auto_s(None) is None
    assert auto_s(Durations(n=ENOUGH - 1, p95_s=10)) is None
    assert auto_s(Durations(n=ENOUGH, p95_s=10)) == 15
    assert auto_s(Durations(n=ENOUGH, p95_s=0.01)) == LEAST_S


@pytest.mark.parametrize(
    ("task", "of_type", "auto", "most", "expected"),
    [
        ({"timeout": "auto"}, {}, 15.0, None, 15),
        ({"timeout": "auto"}, {}, None, None, 600),
        ({"timeout": "auto"}, {}, 15.0, 10, 10),
        ({"timeout": 5}, {"timeout": "auto"}, 15.0, None, 5),
        ({}, {"timeout": "auto"}, 15.0, None, 15),
        ({}, {}, 15.0, None, 600),
    ],
)
def test_the_timeout_of_an_attempt(
    task: dict[str, object], of_type: dict[str, object], auto: float | None, most: float | None, expected: float
) -> None:
    settings = Settings.model_validate({"timeout": 600, "types": {"t": of_type}})
    told = Task.model_validate({"type": "t", **task})
    assert codec.load_task(codec.dump(told), "t.json") == told
    assert timeout_s(told, settings, None, most, lambda: auto) == expected
    if auto is None:
        assert timeout_s(told, settings) == expected


def test_the_time_to_go_is_the_work_left_over_the_slots_and_no_less_than_the_longest_task() -> None:
    known = {"a": Durations(n=9, mean_s=10), "b": Durations(n=9, mean_s=60)}
    assert eta_s({}, known, 4) == (0.0, "")
    assert eta_s({"a": 8}, known, 4) == (20, "")
    assert eta_s({"a": 2}, known, 4) == (10, "")
    assert eta_s({"a": 6, "b": 1}, known, 4) == (60, "")
    assert eta_s({"a": 1, "c": 1}, known, 4) == (None, "no task of type c has completed lately")
    assert eta_s({"a": 1}, known, 0) == (None, "no worker is awake")
