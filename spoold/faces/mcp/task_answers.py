"""Tasks and results as the tools answer with them.

Law: `status` is one of a few words that never change; `state` is the spool's own word. An answer has at most
OUTPUT_MOST characters of output, since a model reads all of it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from spoold.client.read.long_listing import Row
from spoold.client.read.selecting import Located
from spoold.client.read.task_info import not_ended
from spoold.client.spool.waiting import read_result
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer
from spoold.pictures.traces.agent_spans import without_spans
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code, Result, Status, remark_of, why_ended

Word = Literal["running", "completed", "error", "timeout", "cancelled"]
OUTPUT_MOST = 40_000
_ENDS: dict[str, Word] = {Status.SUCCESS: "completed", Status.SKIPPED: "completed", Status.TIMEOUT: "timeout"}
_ENDS |= {Status.CANCELLED: "cancelled"}


class Submitted(Answer):
    """A task that was submitted."""

    taskId: str = Field(description="Its id, for all other tools.")
    created: bool = Field(description="false: the idempotencyKey was used before, and this is that task.")
    message: str


class Failure(Answer):
    """Why a task did not succeed."""

    code: str = Field(description="Such as EXIT_NONZERO, TIMEOUT, CANCELLED, DEPENDENCY_FAILED, INVALID_TASK.")
    message: str


class TaskResult(Answer):
    """The result of a task, or that it has none yet."""

    taskId: str
    status: Word
    finished: bool = Field(description="false: it has not ended yet, and message says what it does.")
    message: str
    output: Any = Field(default=None, description="What it returned or printed.")
    outputTruncated: bool = Field(
        default=False, description="The output is longer; the resource spool://task/{taskId} has all of it."
    )
    exitCode: int | None = None
    error: Failure | None = None
    attempt: int = 0
    worker: str = ""
    durationMs: Annotated[int, Field(ge=0)] | None = None
    tokensUsed: float | None = None
    costUsd: float | None = None


class TaskRow(Answer):
    """A task in a list. state: the spool's own word; reason: why it waits or failed."""

    taskId: str
    status: Word
    state: str
    type: str
    attempt: int
    worker: str
    reason: str


def ending(result: Result) -> Word:
    """Return how a task ended."""
    if result.error is not None and Code.TIMEOUT in (result.error.code, result.error.cause):
        return "timeout"
    return _ENDS.get(result.status, "error")


def status_of(session: Session, located: Located) -> Word:
    """Return the status of a task, without its result where its place says enough. Errors: OSError."""
    if located.state in (State.COMPLETED, State.SKIPPED):
        return "completed"
    if located.state is State.REJECTED:
        return "error"
    if located.state is not State.FAILED:
        return "running"
    try:
        return ending(read_result(session.spool.store, located))
    except (NotFound, BadFile):
        return "error"


def unfinished(located: Located) -> TaskResult:
    """Return the view of a task that has not ended."""
    message = f"{not_ended(located)} wait_tasks waits for it, and explain_task says more."
    return TaskResult(
        taskId=located.id,
        status="running",
        finished=False,
        message=message,
        attempt=located.attempt,
        worker=located.node,
    )


def finished(result: Result, *, output: bool = True) -> TaskResult:
    """Return the view of a result. output: with what it returned or printed."""
    status = ending(result)
    error = None
    if result.error is not None:
        error = Failure(code=str(result.error.code), message=result.error.message)
    # What the agent told in spans is for people with a backend for them.
    value, cut = shortened(without_spans(result.output)) if output else (None, False)
    return TaskResult(
        taskId=result.task_id,
        status=status,
        finished=True,
        message=_said(result, status),
        output=value,
        outputTruncated=cut,
        exitCode=result.exit_code,
        error=error,
        attempt=result.attempt,
        worker=result.worker_id,
        durationMs=max(0, round(result.duration_s * 1000)),
        tokensUsed=result.tokens_used,
        costUsd=result.cost_usd,
    )


def _said(result: Result, status: Word) -> str:
    if result.error is None:
        return " ".join(filter(None, (f"task {result.task_id} has ended: {status}.", remark_of(result))))
    return f"task {result.task_id} has ended: {status} ({why_ended(result)})."


def shortened(value: Any) -> tuple[Any, bool]:
    """Return an output as it is, or the beginning of its text; and whether it was cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= OUTPUT_MOST:
        return value, False
    return text[:OUTPUT_MOST], True


def row_of(session: Session, located: Located, row: Row) -> TaskRow:
    """Return the view of a task in a list. Errors: OSError."""
    return TaskRow(
        taskId=row.id,
        status=status_of(session, located),
        state=row.state,
        type=row.type,
        attempt=row.attempt,
        worker=row.worker or "",
        reason=row.reason[:500],
    )
