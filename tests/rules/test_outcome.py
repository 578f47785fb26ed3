"""Exit codes mean what sysexits(3) and the shell mean by them, and a task may say otherwise."""

import pytest
from hypothesis import given

from spoold.protocol.result import Code, Status
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import CANNOT_RUN, PERMANENT, SUCCESS, TRY_LATER, Charge, Outcome
from tests.rules import strategies as some

NONE: frozenset[int] = frozenset()


def test_zero_is_success_whatever_the_task_says() -> None:
    assert attempt_outcome.of_exit(0, frozenset({0}), frozenset({0})) == SUCCESS == Outcome(Status.SUCCESS)


def test_75_asks_for_another_try_and_charges_nothing() -> None:
    found = attempt_outcome.of_exit(TRY_LATER, NONE, NONE, 30)
    assert (found.code, found.charge, found.final) == (Code.TRY_LATER, Charge.NOTHING, False)
    assert found.retry_after_s == 30


@pytest.mark.parametrize("code", sorted(PERMANENT))
def test_permanent_codes_are_final(code: int) -> None:
    found = attempt_outcome.of_exit(code, NONE, NONE)
    assert (found.status, found.code, found.charge, found.final) == (
        Status.FAILURE,
        Code.EXIT_NONZERO,
        Charge.FAILURE,
        True,
    )


@pytest.mark.parametrize("code", sorted(CANNOT_RUN))
def test_what_cannot_run_here_may_run_elsewhere(code: int) -> None:
    found = attempt_outcome.of_exit(code, NONE, NONE)
    assert (found.code, found.charge, found.final) == (Code.SPAWN_FAILED, Charge.FAILURE, False)
    assert "not" in found.message


@pytest.mark.parametrize("code", [1, 2, 66, 76, 124, 137, 255])
def test_other_codes_are_failures_by_the_retry_rule(code: int) -> None:
    assert attempt_outcome.of_exit(code, NONE, NONE) == Outcome(
        Status.FAILURE, Code.EXIT_NONZERO, f"exit code {code}", Charge.FAILURE
    )


def test_a_task_that_names_codes_to_try_again_ends_at_all_others() -> None:
    on = frozenset({3, 64})
    assert [code for code in range(1, 128) if not attempt_outcome.of_exit(code, on, NONE).final] == [3, 64, TRY_LATER]


def test_a_task_that_names_codes_never_to_try_again_ends_at_them() -> None:
    never = frozenset({3, 64, TRY_LATER, 127})
    final = {code for code in range(1, 128) if attempt_outcome.of_exit(code, NONE, never).final}
    assert final == never | PERMANENT
    assert attempt_outcome.of_exit(TRY_LATER, NONE, never).code is Code.EXIT_NONZERO


@given(some.exit_codes, some.code_sets, some.code_sets)
def test_never_wins_over_on_and_only_a_failure_is_charged(
    code: int, on: frozenset[int], never: frozenset[int]
) -> None:
    found = attempt_outcome.of_exit(code, on, never)
    assert found.final or code not in never or code == 0
    assert (found.charge is Charge.NOTHING) == (code == 0 or found.code is Code.TRY_LATER)
    assert str(code) in found.message or code == 0


def test_a_timeout_is_a_failure_with_a_status_of_its_own() -> None:
    assert attempt_outcome.failure(Code.TIMEOUT, "too slow").status is Status.TIMEOUT
    assert attempt_outcome.failure(Code.STALLED, "silent").status is Status.FAILURE
    assert attempt_outcome.failure(Code.OUTPUT_INVALID, "no JSON", final=True).final


def test_nobody_pays_for_what_is_nobodys_fault() -> None:
    assert attempt_outcome.handed_back("drained") == Outcome(Status.HANDED_BACK, Code.HANDED_BACK, "drained")
    assert attempt_outcome.worker_died("gone").charge is Charge.CRASH
    assert not attempt_outcome.worker_died("gone").final


def test_a_cancel_and_a_deadline_are_final_and_free() -> None:
    for found in (attempt_outcome.cancelled("asked"), attempt_outcome.past_deadline("late")):
        assert found.final
        assert found.charge is Charge.NOTHING
    assert attempt_outcome.past_deadline("late").code is Code.DEADLINE


def test_what_the_owner_of_a_worker_does_not_allow_ends_the_task_and_costs_it_nothing() -> None:
    assert attempt_outcome.refused("why") == Outcome(
        Status.FAILURE, Code.SPAWN_FAILED, "why", charge=Charge.NOTHING, final=True
    )
