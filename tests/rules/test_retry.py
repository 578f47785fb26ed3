"""The retry rule: budgets are kept, delays grow, and whatever comes out has a name that everybody can read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.lifecycle import State
from spoold.protocol.names import DELAY_MAX_MS, TaskName, parse_task
from spoold.protocol.result import Code, Error, Status
from spoold.protocol.task import Task
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import SUCCESS, Charge, Outcome
from spoold.rules.attempts.retry_rule import Again, End, decide, delay_s, pardoned
from spoold.rules.attempts.task_policy import RetryPolicy
from tests.protocol.strategies import ids
from tests.rules import strategies as some

POLICY = RetryPolicy(max=2, backoff_s=1, factor=2, jitter=0, max_backoff_s=60, crash_limit=3)
BROKEN = attempt_outcome.failure(Code.EXIT_NONZERO, "exit code 1")
DIED = attempt_outcome.worker_died("worker w died")
LATER = attempt_outcome.of_exit(75, frozenset(), frozenset())


def again(name: TaskName, ended: Outcome, policy: RetryPolicy = POLICY) -> TaskName:
    verdict = decide(name, ended, policy)
    assert isinstance(verdict, Again), verdict
    return verdict.name


def end(name: TaskName, ended: Outcome, policy: RetryPolicy = POLICY) -> End:
    verdict = decide(name, ended, policy)
    assert isinstance(verdict, End), verdict
    return verdict


def test_success_completes_without_an_error() -> None:
    assert end(some.name(), SUCCESS) == End(State.COMPLETED, None)


def test_failures_are_granted_as_many_retries_as_the_policy_says() -> None:
    first = some.name()
    second = again(first, BROKEN)
    third = again(second, BROKEN)
    assert [name.failures for name in (first, second, third)] == [0, 1, 2]
    assert [name.attempt for name in (first, second, third)] == [1, 2, 3]
    last = end(third, BROKEN)
    assert last.state is State.FAILED
    assert last.error is not None
    assert (last.error.code, last.error.cause) == (Code.MAX_RETRIES, Code.EXIT_NONZERO)
    assert "failed 3 times, 2 retries spent" in last.error.message


def test_a_task_that_may_not_be_retried_fails_with_its_own_error() -> None:
    """MAX_RETRIES would hide what happened where there never were any."""
    error = end(some.name(), BROKEN, RetryPolicy(0, 1, 2, 0, 60, 3)).error
    assert error is not None
    assert (error.code, error.cause, error.message) == (Code.EXIT_NONZERO, None, "exit code 1")


def test_crashes_have_a_limit_of_their_own() -> None:
    second = again(some.name(), DIED)
    third = again(second, DIED)
    assert (third.failures, third.crashes) == (0, 2)
    error = end(third, DIED).error
    assert error is not None
    assert error.code is Code.WORKER_DIED
    assert "crash 3 of at most 3" in error.message
    assert isinstance(decide(third, BROKEN, POLICY), Again)


@pytest.mark.parametrize(
    "ended", [attempt_outcome.handed_back("drained"), attempt_outcome.of_exit(75, frozenset(), frozenset())]
)
def test_what_is_nobodys_fault_is_granted_for_ever_and_charges_nothing(ended: Outcome) -> None:
    name = some.name(failures=2, crashes=2, attempt=5)
    for _ in range(50):
        name = again(name, ended)
    assert (name.failures, name.crashes, name.attempt) == (2, 2, 55)


@pytest.mark.parametrize(
    "ended", [attempt_outcome.not_started("disk full"), attempt_outcome.of_exit(75, frozenset(), frozenset())]
)
def test_what_might_end_the_same_way_at_once_rests_longer_each_time(ended: Outcome) -> None:
    name, rests = some.name(), []
    for _ in range(5):
        name = again(name, ended)
        rests.append(name.delay_ms)
    assert rests == [1000, 2000, 4000, 8000, 16_000]
    assert (name.failures, name.crashes) == (0, 0)


def test_a_hand_back_does_not_rest() -> None:
    assert again(some.name(delay_ms=5000), attempt_outcome.handed_back("drained")).delay_ms == 0


@pytest.mark.parametrize("ended", [attempt_outcome.cancelled("asked"), attempt_outcome.past_deadline("late")])
def test_a_final_outcome_ends_whatever_the_budget_holds(ended: Outcome) -> None:
    verdict = end(some.name(), ended)
    assert verdict.state is State.FAILED
    assert verdict.error is not None
    assert verdict.error.code is ended.code


@given(some.policies, some.outcomes, st.integers(0, 8), st.integers(0, 5), st.integers(0, 20))
def test_every_decision_names_its_reason_and_a_readable_next_attempt(
    policy: RetryPolicy, ended: Outcome, failures: int, crashes: int, free: int
) -> None:
    name = some.name("a", attempt=1 + failures + crashes + free, failures=failures, crashes=crashes)
    verdict = decide(name, ended, policy)
    if ended == SUCCESS:
        assert verdict == End(State.COMPLETED, None)
        return
    assert verdict.error is not None
    assert ended.code in (verdict.error.code, verdict.error.cause)
    if isinstance(verdict, End):
        assert verdict.state is State.FAILED
        return
    after = verdict.name
    assert not ended.final
    assert parse_task(after.encode()) == after
    assert 0 <= after.delay_ms <= DELAY_MAX_MS
    assert after.attempt == name.attempt + 1
    charged = (after.failures - failures, after.crashes - crashes)
    assert charged == ((ended.charge is Charge.FAILURE) * 1, (ended.charge is Charge.CRASH) * 1)
    assert after.failures <= max(policy.max, failures)
    assert after.crashes < max(policy.crash_limit, crashes + 1)
    assert (after.rank, after.order, after.id, after.conditional) == (
        name.rank,
        name.order,
        name.id,
        name.conditional,
    )


@given(ids, st.integers(1, 100), st.integers(1, 100), some.policies)
def test_the_jitter_stays_within_its_bounds(task_id: str, attempt: int, count: int, policy: RetryPolicy) -> None:
    plain = RetryPolicy(policy.max, policy.backoff_s, policy.factor, 0, policy.max_backoff_s, policy.crash_limit)
    base = delay_s(task_id, attempt, count, plain)
    assert base <= policy.max_backoff_s
    low, high = base * (1 - policy.jitter), base * (1 + policy.jitter)
    assert low <= delay_s(task_id, attempt, count, policy) <= high * (1 + 1e-9)


@given(ids, st.integers(1, 100), some.policies)
def test_delays_grow_until_the_ceiling_and_stay_there(task_id: str, attempt: int, policy: RetryPolicy) -> None:
    plain = RetryPolicy(policy.max, policy.backoff_s, policy.factor, 0, policy.max_backoff_s, policy.crash_limit)
    delays = [delay_s(task_id, attempt, count, plain) for count in range(1, 200)]
    assert delays[0] == min(policy.backoff_s, policy.max_backoff_s)
    assert delays == sorted(delays)
    assert delays[-1] <= policy.max_backoff_s


def test_a_crowd_that_failed_together_does_not_come_back_together() -> None:
    policy = RetryPolicy(3, 10, 2, 0.25, 60, 3)
    delays = {delay_s(f"task-{number}", 1, 1, policy) for number in range(100)}
    assert len(delays) == 100
    assert max(delays) - min(delays) > 4


def test_the_delay_needs_no_stored_state() -> None:
    """Two leaders, or one before and after a crash, come to the same name."""
    policy = RetryPolicy(3, 10, 2, 0.25, 60, 3)
    assert again(some.name("Task"), BROKEN, policy) == again(some.name("Task"), BROKEN, policy)
    assert delay_s("Task", 1, 1, policy) == delay_s("task", 1, 1, policy)


@pytest.mark.parametrize(
    ("asked", "delay_ms"),
    [(0, 0), (30, 30_000), (-5, 0), (float("inf"), DELAY_MAX_MS), (float("nan"), 0), (1e300, DELAY_MAX_MS)],
)
def test_an_attempt_may_say_how_long_to_rest(asked: float, delay_ms: int) -> None:
    ended = attempt_outcome.of_exit(75, frozenset(), frozenset(), asked)
    assert again(some.name(), ended, replace(POLICY, max_retry_after_s=float("inf"))).delay_ms == delay_ms


def test_exit_75_rests_longer_each_time() -> None:
    name, rests = some.name(), []
    for _ in range(4):
        name = again(name, attempt_outcome.of_exit(75, frozenset(), frozenset()))
        rests.append(name.delay_ms)
    assert rests == [1000, 2000, 4000, 8000]


def test_failures_that_a_task_brought_along_do_not_shorten_its_rest() -> None:
    assert again(some.name(failures=9), attempt_outcome.of_exit(75, frozenset(), frozenset())).delay_ms == 1000


def test_an_outcome_without_a_code_is_still_a_failure() -> None:
    error = end(some.name(), Outcome(Status.FAILURE, final=True)).error
    assert error is not None
    assert error.code is Code.EXIT_NONZERO


def test_a_task_says_its_own_exit_codes() -> None:
    own = Task.model_validate({"command": "x", "retry": {"never": [3]}}).retry
    assert isinstance(decide(some.name(), attempt_outcome.of_exit(3, frozenset(), frozenset(own.never)), POLICY), End)
    assert isinstance(
        decide(some.name(), attempt_outcome.of_exit(4, frozenset(), frozenset(own.never)), POLICY), Again
    )


@pytest.mark.parametrize(
    ("most", "attempt", "ends"), [(100, 100, False), (100, 101, True), (0, 1, True), (2, 3, True)]
)
def test_trying_later_has_an_end(most: int, attempt: int, ends: bool) -> None:
    policy = replace(POLICY, max_later=most)
    verdict = decide(some.name("a", attempt=attempt), LATER, policy)
    assert isinstance(verdict, End) == ends
    if isinstance(verdict, End):
        assert verdict.error is not None
        assert (verdict.state, verdict.error.code) == (State.FAILED, Code.TRY_LATER)
        said = f"{attempt} attempt{'s' if attempt > 1 else ''} charged nothing, {most} may (retry.max_later)"
        assert said in verdict.error.message
    # What was charged is counted elsewhere, and hand-backs are never the end.
    assert isinstance(decide(some.name("a", attempt=attempt + 5, failures=2, crashes=3), LATER, policy), End) == ends
    assert isinstance(decide(some.name("a", attempt=900), attempt_outcome.not_started("the disk"), policy), Again)


def test_a_rest_that_an_attempt_asks_for_has_a_ceiling_and_its_record_says_so() -> None:
    asks = replace(LATER, retry_after_s=1e12)
    verdict = decide(some.name(), asks, POLICY)
    assert isinstance(verdict, Again)
    assert verdict.name.delay_ms == 86_400_000
    assert verdict.error is not None
    assert verdict.error.message.endswith("it asked for 1e+12 s of rest and gets 86400 (retry.max_retry_after_s)")
    modest = decide(some.name(), replace(LATER, retry_after_s=86_400), POLICY)
    assert isinstance(modest, Again)
    assert (modest.name.delay_ms, modest.error) == (86_400_000, Error(code=Code.TRY_LATER, message=LATER.message))


@given(st.lists(st.sampled_from(["dies", "silent", "handed back"]), max_size=40), st.integers(1, 5))
def test_a_worker_that_was_only_silent_charges_nobody_and_each_task_still_ends(ends: list[str], limit: int) -> None:
    """Each lost attempt whose worker beats again is known at the next crash; nobody knows of the last one."""
    policy = replace(POLICY, crash_limit=limit)
    name, outlived, died, lost = some.name(), 0, 0, 0
    for ended in ends:
        if ended == "handed back":
            name = again(name, attempt_outcome.handed_back("drained"), policy)
            continue
        pardon = pardoned(name, outlived, policy)
        assert 0 <= pardon <= name.crashes
        lost += 1
        outlived += ended == "silent"
        died += ended == "dies"
        verdict = decide(replace(name, crashes=name.crashes - pardon), DIED, policy)
        if isinstance(verdict, End):
            break
        name = verdict.name
        assert name.crashes >= min(died, limit) - 1, "a worker that died is never pardoned"
        assert lost < 2 * limit, "a task that silences each worker comes to an end"


def test_a_closed_laptop_costs_a_task_nothing_that_counts_later() -> None:
    """Three silences, each seen to be over: the third is crash 1, as the first was."""
    name = some.name()
    for outlived in range(3):
        name = again(replace(name, crashes=name.crashes - pardoned(name, outlived, POLICY)), DIED)
        assert name.crashes == 1
    name = again(replace(name, crashes=name.crashes - pardoned(name, 3, POLICY)), DIED)
    assert name.crashes == 1 + (POLICY.crash_limit <= 2)
