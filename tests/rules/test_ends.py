"""When an attempt or a task has to end: its timeout, its deadline, and what stops it before."""

from __future__ import annotations

import math

import pytest

from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code, Status
from spoold.rules.attempts import attempt_outcome, end_conditions

RECALLED = attempt_outcome.handed_back("its worker leaves")


@pytest.mark.parametrize(
    ("timeout_s", "left_s", "limit"),
    [
        (60, math.inf, end_conditions.Limit(60, by_deadline=False)),
        (60, 60, end_conditions.Limit(60, by_deadline=False)),
        (60, 59, end_conditions.Limit(59, by_deadline=True)),
        (60, -5, end_conditions.Limit(end_conditions.LEAST_S, by_deadline=True)),
        (None, math.inf, end_conditions.Limit(None, by_deadline=False)),
        (None, 5, end_conditions.Limit(5, by_deadline=True)),
    ],
)
def test_an_attempt_ends_at_its_timeout_or_its_deadline_whichever_is_first(
    timeout_s: float | None, left_s: float, limit: end_conditions.Limit
) -> None:
    assert end_conditions.limit(timeout_s, left_s) == limit


def test_a_moment_is_past_from_its_first_instant_on() -> None:
    assert [end_conditions.past(100, now) for now in (99.9, 100, 101)] == [False, True, True]
    assert end_conditions.overdue({"a": 99, "b": 100, "c": 101}, 100) == ["a", "b"]


@pytest.mark.parametrize("state", State)
def test_only_a_ready_task_is_the_leaders_to_fail_once_its_deadline_is_past(state: State) -> None:
    late = end_conditions.too_late(state)
    assert (late is not None) == (state is State.READY)
    assert late is None or (late.code, late.status, late.final) == (Code.DEADLINE, Status.TIMEOUT, True)


def test_an_attempt_goes_on_while_nothing_stops_it() -> None:
    assert end_conditions.why_stop(None, None, math.inf) is None
    assert end_conditions.why_stop(None, None, 0.1) is None


def test_a_person_is_heard_before_the_worker_and_the_worker_before_the_deadline() -> None:
    told = "ann asked"
    assert end_conditions.why_stop(told, RECALLED, -1) == attempt_outcome.cancelled(told)
    assert end_conditions.why_stop(None, RECALLED, -1) == RECALLED
    late = end_conditions.why_stop(None, None, 0)
    assert late is not None
    assert (late.code, late.message) == (Code.DEADLINE, "its deadline passed while it ran")


def test_what_took_too_long_ended_by_its_timeout_or_by_its_deadline() -> None:
    slow = end_conditions.timed_out("took 5 s", by_deadline=False)
    late = end_conditions.timed_out("took 5 s", by_deadline=True)
    assert (slow.code, slow.status, slow.final, slow.message) == (Code.TIMEOUT, Status.TIMEOUT, False, "took 5 s")
    assert (late.code, late.status, late.final) == (Code.DEADLINE, Status.TIMEOUT, True)
    assert late.message == "its deadline passed while it ran: took 5 s"


def test_a_refused_task_failed_unless_its_deadline_refused_it() -> None:
    assert end_conditions.status_of(Code.DEADLINE) is Status.TIMEOUT
    assert end_conditions.status_of(Code.DEPENDENCY_FAILED) is Status.FAILURE
