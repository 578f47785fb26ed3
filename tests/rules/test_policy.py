"""A task's own wishes, over the settings of its type, over the spool's."""

from typing import Any

import pytest

from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts import task_policy
from spoold.rules.attempts.task_policy import RetryPolicy

SETTINGS = Settings.model_validate(
    {
        "timeout": 100,
        "types": {"review": {"timeout": 20, "max_retries": 7, "priority": "high"}, "command": {"max_retries": 0}},
        "retry": {"max": 2, "backoff_s": 4, "factor": 3, "jitter": 0.5, "max_backoff_s": 60, "crash_limit": 5},
    }
)


def task(**fields: Any) -> Task:
    return Task.model_validate({"type": "review", **fields})


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({"type": "other"}, 2),
        ({}, 7),
        ({"max_retries": 0}, 0),
        ({"max_retries": 1, "retry": {"max": 4}}, 4),
        ({"retry": {"max": 0}}, 0),
        ({"type": "command", "command": "x"}, 0),
    ],
)
def test_the_nearest_wish_about_retries_counts_even_if_it_is_none(fields: dict[str, Any], most: int) -> None:
    assert task_policy.retry_policy(task(**fields), SETTINGS).max == most


def test_what_a_task_does_not_say_is_the_spools() -> None:
    assert task_policy.retry_policy(task(type="other"), SETTINGS) == RetryPolicy(2, 4, 3, 0.5, 60, 5)


def test_what_a_task_says_is_its_own_except_the_limits_that_protect_the_spool() -> None:
    own = {"max": 1, "backoff_s": 0, "factor": 1, "jitter": 0, "on": [1, 2], "never": [3]}
    assert task_policy.retry_policy(task(retry=own), SETTINGS) == RetryPolicy(
        1, 0, 1, 0, 60, 5, frozenset({1, 2}), frozenset({3})
    )


@pytest.mark.parametrize(("fields", "seconds"), [({}, 20), ({"timeout": 3}, 3), ({"type": "other"}, 100)])
def test_the_nearest_timeout_counts(fields: dict[str, Any], seconds: float) -> None:
    assert task_policy.timeout_s(task(**fields), SETTINGS) == seconds


@pytest.mark.parametrize(
    ("fields", "own", "most", "seconds"),
    [({}, 50, None, 50), ({"timeout": 3}, 50, None, 3), ({}, None, 10, 10), ({"timeout": 90}, 50, 60, 60)],
)
def test_a_handlers_timeout_comes_before_its_types_and_its_limit_before_all(
    fields: dict[str, Any], own: float | None, most: float | None, seconds: float
) -> None:
    assert task_policy.timeout_s(task(**fields), SETTINGS, own, most) == seconds


@pytest.mark.parametrize(
    ("fields", "rank"), [({}, 4990), ({"priority": 0}, 5000), ({"priority": -7}, 5007), ({"type": "other"}, 5000)]
)
def test_the_nearest_priority_counts_even_if_it_is_zero(fields: dict[str, Any], rank: int) -> None:
    assert task_policy.rank(task(**fields), SETTINGS) == rank
