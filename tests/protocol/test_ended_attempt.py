"""What is handed on of a result is what its record says, under the name that counts."""

from typing import Any

import pytest

from spoold.protocol.names import EndedName
from spoold.protocol.result import EndedAttempt, Result

NAME = EndedName("build", 2, "w1")


def record(**fields: Any) -> Result:
    """A record of another attempt: what the name says counts."""
    return Result.model_validate({"task_id": "x", "attempt": 9, "worker_id": "w9", "status": "failure", **fields})


def test_a_whole_record_is_handed_on() -> None:
    figures = {"duration_s": 4.25, "cpu_s": 3.5, "frozen_s": 1.0, "max_rss_mb": 20.5, "exit_code": 2}
    told = {"type": "code", "batch": "nightly", "started_at": "2026-02-02T09:00:00Z", "completed_at": "later"}
    spent = {"tokens_used": 1200, "cost_usd": 0.25, "estimated": True}
    found = EndedAttempt.of(NAME, record(**figures, **told, **spent))
    assert (found.id, found.attempt, found.decider, found.status, found.code) == ("build", 2, "w1", "failure", None)
    assert {name: getattr(found, name) for name in (*figures, *told, *spent)} == {**figures, **told, **spent}


@pytest.mark.parametrize(
    ("error", "code"),
    [({"code": "TIMEOUT"}, "TIMEOUT"), ({"code": "MAX_RETRIES", "cause": "STALLED"}, "STALLED"), (None, None)],
)
def test_the_code_is_the_one_behind_spent_retries(error: Any, code: str | None) -> None:
    assert EndedAttempt.of(NAME, record(error=error)).code == code


def test_a_record_without_a_type_gets_the_one_that_the_leader_knew() -> None:
    assert EndedAttempt.of(NAME, record(), "review").type == "review"
    assert EndedAttempt.of(NAME, record(type="code"), "review").type == "code"
    assert EndedAttempt.of(NAME, record(status="a word of a later release")).status == "a word of a later release"
