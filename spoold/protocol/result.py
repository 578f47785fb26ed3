"""What an attempt ended with. Written once, durable before the task file moves, under the name it will get."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.fields import Count


class Status(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    WORKER_DIED = "worker_died"
    HANDED_BACK = "handed_back"


class Code(StrEnum):
    """Why an attempt, or a task, did not succeed."""

    TIMEOUT = "TIMEOUT"
    WORKER_DIED = "WORKER_DIED"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"
    MAX_RETRIES = "MAX_RETRIES"
    EXIT_NONZERO = "EXIT_NONZERO"
    SIGNALED = "SIGNALED"
    OOM_KILLED = "OOM_KILLED"
    STALLED = "STALLED"
    CANCELLED = "CANCELLED"
    SPAWN_FAILED = "SPAWN_FAILED"
    INVALID_TASK = "INVALID_TASK"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    DEADLINE = "DEADLINE"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    TRY_LATER = "TRY_LATER"
    HANDED_BACK = "HANDED_BACK"


class Error(BaseModel):
    """Why it failed: a code for programs, a sentence for people; cause is the code behind MAX_RETRIES."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    code: Code
    message: str
    cause: Code | None = None


class Result(BaseModel):
    """The record of one attempt. Times are RFC 3339 for people; duration_s is measured, not their difference.

    Readers accept fields they do not know: a newer worker may say more.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    task_id: str
    attempt: int
    worker_id: str
    status: Status
    started_at: str | None = None
    completed_at: str
    duration_s: float = 0.0
    exit_code: int | None = None
    output: Any = None
    error: Error | None = None
    tokens_used: Count | None = None
    cost_usd: Count | None = None
    log: str | None = None
    type: str | None = None
    batch: str | None = None
    partial: bool = False
    max_rss_mb: float | None = None
