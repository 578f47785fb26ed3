"""What the next attempt asks for after one that ran out of memory, and when there is none."""

from typing import Any

import pytest

from spoold.protocol.names import TaskName
from spoold.protocol.result import Code, Error, Result
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import failure
from spoold.rules.attempts.retry_rule import MOST_MB, in_vain, is_raised, may_be_raised, raised, ran_out
from spoold.rules.attempts.task_policy import RetryPolicy, retry_policy


def record(attempt: int, code: Code | None, cause: Code | None = None) -> Result:
    error = Error(code=code, message="", cause=cause) if code else None
    return Result(task_id="a", attempt=attempt, worker_id="w", status="failure", completed_at="now", error=error)


OOM = [record(1, Code.OOM_KILLED), record(2, Code.MAX_RETRIES, Code.OOM_KILLED)]


def task(mem: Any = "600M", factor: float | None = 2, retry_count: int = 0) -> tuple[Task, RetryPolicy]:
    made = Task.model_validate(
        {
            "id": "a",
            "command": ["work"],
            "requires": {"mem": mem},
            "retry": {"memory_factor": factor},
            "retry_count": retry_count,
        }
    )
    return made, retry_policy(made, Settings())


def name(failures: int) -> TaskName:
    return TaskName(5000, "0000000000-1", "a", attempt=failures + 1, failures=failures)


@pytest.mark.parametrize(
    ("failures", "records", "mem_mb"),
    [
        (0, [], 600),
        (0, OOM, 600),  # after `spool retry` the charges begin anew
        (1, OOM[:1], 1200),
        (1, OOM, 1200),
        (2, OOM, 2400),
        (2, [OOM[0], OOM[0], record(2, Code.EXIT_NONZERO)], 1200),
        (2, [record(1, Code.TIMEOUT), record(2, None)], 600),
    ],
)
def test_each_attempt_that_ran_out_counts_once(failures: int, records: list[Result], mem_mb: int) -> None:
    content, policy = task()
    lane = raised(content, name(failures), policy, records)
    assert lane.mem_mb == mem_mb
    assert is_raised(lane.encode(), content.lane_name)


def test_failures_that_a_task_brought_along_are_none_of_these() -> None:
    content, policy = task(retry_count=2)
    assert raised(content, name(2), policy, OOM) == content.lane
    assert raised(content, name(3), policy, OOM).mem_mb == 1200


@pytest.mark.parametrize(("mem", "factor"), [(0, 2), ("600M", 1), ("600M", None)])
def test_without_a_factor_or_a_demand_nothing_is_raised(mem: Any, factor: float | None) -> None:
    content, policy = task(mem, factor)
    assert not may_be_raised(content, name(2), policy)
    assert raised(content, name(2), policy, OOM) == content.lane


def test_it_is_rounded_up_and_has_an_end() -> None:
    content, policy = task(1, 1.5)
    assert raised(content, name(1), policy, OOM).mem_mb == 2
    content, policy = task(900_000_000, 100)
    assert raised(content, name(2), policy, OOM).mem_mb == MOST_MB


def test_the_type_may_set_the_factor() -> None:
    settings = Settings.model_validate({"types": {"big": {"memory_factor": 3}}, "retry": {"memory_factor": 2}})
    for content, factor in (({"type": "big"}, 3), ({"type": "small"}, 2)):
        assert retry_policy(Task.model_validate(content), settings).memory_factor == factor


@pytest.mark.parametrize(
    ("lane", "base", "said"),
    [
        ("type=a,mem=1200", "type=a,mem=600", True),
        ("type=a,mem=600", "type=a,mem=600", True),
        ("type=a,mem=300", "type=a,mem=600", False),
        ("type=b,mem=1200", "type=a,mem=600", False),
        ("type=a,mem=600", "type=a", False),
        ("nonsense", "type=a,mem=600", False),
        ("type=a,mem=600", "nonsense", False),
    ],
)
def test_another_lane_with_more_memory_is_known(lane: str, base: str, said: bool) -> None:
    assert is_raised(lane, base) is said


def test_a_second_time_without_more_memory_is_the_last() -> None:
    content, policy = task(factor=None)
    oom = failure(Code.OOM_KILLED, "used 700 MiB")
    assert in_vain(content, name(0), policy, oom, OOM) == oom
    assert in_vain(content, name(1), policy, oom, [record(1, Code.TIMEOUT)]) == oom
    last = in_vain(content, name(1), policy, oom, OOM[:1])
    assert last.final
    assert last.message.endswith('raise "requires": {"mem": …}, or add "retry": {"memory_factor": 2}')


def test_without_a_demand_the_line_to_add_names_both() -> None:
    content, policy = task(0, 2)
    last = in_vain(content, name(1), policy, failure(Code.OOM_KILLED, "used 700 MiB"), OOM[:1])
    assert last.final
    assert 'say how much it needs, "requires": {"mem": …}, and add' in last.message


def test_with_a_factor_or_for_another_reason_the_budget_counts() -> None:
    content, policy = task()
    for outcome in (failure(Code.OOM_KILLED, "used"), failure(Code.TIMEOUT, "long")):
        assert in_vain(content, name(1), policy, outcome, OOM) == outcome
    assert ran_out(OOM) == 2
