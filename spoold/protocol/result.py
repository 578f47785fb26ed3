"""The outcome of an attempt: its record in results/, and what the leader hands of it to those that decide by it.

Law: a record is written before its task file moves, under the name that the file gets if the task ends. From then on
it never changes. The place of the task file says how a task ended, so an unknown word or field hides no record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from spoold.protocol.amount import amount, clip, some
from spoold.protocol.errors import legible
from spoold.protocol.fields import Recorded, RecordedCount, RecordedUnits
from spoold.protocol.names import EndedName


class Status(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    WORKER_DIED = "worker_died"
    HANDED_BACK = "handed_back"
    SKIPPED = "skipped"


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
    SKIPPED = "SKIPPED"
    REJECTED = "REJECTED"


# Words of a later release, or of another program's worker, do not make a record unreadable: the place of the task
# file says how the task ended.
AnyStatus = Annotated[Status | str, Field(union_mode="left_to_right")]
AnyCode = Annotated[Code | str, Field(union_mode="left_to_right")]


REASON_MAX = 300
NOTHING, _NAMED = "nothing to merge", 3
# The `output_format` of an output that is the text of the result file.
TEXT = "text"


class Error(BaseModel):
    """Why it failed: a code for programs, a sentence for people; cause is the code behind MAX_RETRIES; origin is the
    task with which a failure by dependency began.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    code: AnyCode
    message: str = ""
    cause: AnyCode | None = None
    origin: str | None = None


class Total(BaseModel):
    """The sums over several attempts of one task. A figure that no record has is None."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    attempts: RecordedUnits
    duration_s: Recorded = 0.0
    cpu_s: Recorded | None = None
    tokens_used: RecordedCount | None = None
    cost_usd: RecordedCount | None = None


class FilesOverlap(BaseModel):
    """An attempt of another task that ran at the same time and changed the same files."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    task: str
    attempt: int = 0
    files: tuple[str, ...] = ()


class Result(BaseModel):
    """The record of one attempt. Times are RFC 3339 for people; duration_s is measured, not their difference.

    estimated: the worker died, and start and duration are as of its last beat. total: the sums over this attempt and
    all before it; None for a first attempt. approval: who answered the task's question before it started, when and
    what; questions: the same of each question that the attempt itself asked. type: as which it ran; instead_of: the
    type of its task, where that is another one. uses: the units that it used of each
    limit; None for none. budgets, budget: what its task draws on by itself, and its reservation.
    output_format: `text` where the result file of the attempt could not be read as JSON, so that its output is the
    text of that file; output_problem: what was wrong with the file or its figures, and the fix; None for nothing.
    Readers accept unknown fields: a newer worker may write more.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    task_id: str
    attempt: int
    worker_id: str
    status: AnyStatus
    started_at: str | None = None
    completed_at: str = ""
    duration_s: Recorded = 0.0
    exit_code: int | None = None
    output: Any = None
    output_format: str | None = None
    output_problem: str | None = None
    error: Error | None = None
    tokens_used: RecordedCount | None = None
    cost_usd: RecordedCount | None = None
    log: str | None = None
    type: str | None = None
    instead_of: str | None = None
    batch: str | None = None
    budgets: tuple[str, ...] = ()
    budget: dict[str, RecordedCount] = {}
    partial: bool = False
    frozen_s: Recorded | None = None
    max_rss_mb: Recorded | None = None
    cpu_s: Recorded | None = None
    estimated: bool = False
    changed_files: tuple[str, ...] | None = None
    files_overlap: tuple[FilesOverlap, ...] | None = None
    total: Total | None = None
    approval: Any = None
    questions: Any = None
    uses: dict[str, RecordedUnits] | None = None


def own_reason(output: Any) -> str:
    """Return why an attempt says by itself that it failed, in one line: the first of the `reasons` in its output, and
    the `code` there, as agents and merges leave them; '' for none.
    """
    reasons = output.get("reasons") if isinstance(output, dict) else None
    if not isinstance(reasons, list) or not reasons or not isinstance(reasons[0], str):
        return ""
    reason, code = " ".join(reasons[0].split()), output.get("code")
    reason = clip(reason, REASON_MAX)  # with its end, which is the fix
    return f"{code}: {reason}" if isinstance(code, str) else reason


def work_of(output: Any, merged: str = "") -> str:
    """Return what the work of an agent in a repository came to, in one line: its outcome, how many files it changed,
    where its work is, and what became of its merge, as the output says; what a merge landed; '' for any other output.

    merged: what the result of its merge says (`merge_of`); '' where it has not ended, or is not known.
    """
    place = output.get("workspace") if isinstance(output, dict) else None
    outcome = _word(output, "outcome")
    if not isinstance(place, dict) or not outcome:
        return _landed(output)
    changed = output.get("changed_files")
    files = amount(len(changed), "changed file") if isinstance(changed, list) and changed else "no changed file"
    ref, repo, branch, merge = (
        _word(place, "ref"),
        _word(place, "repo"),
        _word(output, "branch"),
        _word(output, "merge"),
    )
    where = f", in {ref}{f' of {repo}' if repo else ''}" if ref else ""
    where += f" and the branch {branch}" if branch else ""
    if merge and outcome == "no_change":
        merged = f"{NOTHING}; `must_change = true` makes that a failure"
    elif merge:
        merged = merged or f"{merge} merges it"
    return f"{outcome}, {files}{where}{f'; {merged}' if merge else ''}"


def merged_by(output: Any) -> str:
    """Return the id of the task that merges an agent's work; '' for none, and where there is nothing to merge."""
    return "" if _word(output, "outcome") == "no_change" else _word(output, "merge")


def merge_of(result: Result) -> str:
    """Return what became of work, in one line, as the result of its merge says."""
    if result.status != Status.SUCCESS:
        return f"its merge failed: {message_of(result)}"
    return _landed(result.output) or f"{result.task_id} has merged it"


def _landed(output: Any) -> str:
    """Return what a merge landed, by its output; '' for an output that is of none."""
    rows, into = (output.get("landed"), _word(output, "into")) if isinstance(output, dict) else (None, "")
    if not isinstance(rows, list) or not into:
        return ""
    commits = list(dict.fromkeys(filter(None, (_word(row, "merge") for row in rows))))
    if commits:
        return f"merged as {some(commits, _NAMED)} into {into}"
    return f"{into} has it already" if rows else NOTHING


def unsaved_of(output: Any) -> str:
    """Return where the only copy of an agent's work is, and what brings it to the remote, as the output says; '' for
    an output that names none."""
    left = output.get("unsaved") if isinstance(output, dict) else None
    worker, folder, push = (_word(left, name) for name in ("worker", "folder", "push"))
    if not worker or not folder:
        return ""
    brings = f": `{push}` there brings it to the remote, and so does the next task there with that repository"
    return f"when it ended, its work was on {worker} alone, in {folder}{brings if push else ''}"


def _word(said: Any, name: str) -> str:
    """Return a text field in one line, with a bound; '' where it is none."""
    value = said.get(name) if isinstance(said, dict) else None
    return legible(" ".join(value.split()))[:REASON_MAX] if isinstance(value, str) else ""


def message_of(result: Result) -> str:
    """Return the message of an attempt's error, with the reason that it gives by itself, and where the only copy of
    its work is; '' for a success."""
    if result.error is None:
        return ""
    # Where the work is comes before the reason, which is long: many faces cut the end.
    message = "; ".join(filter(None, (result.error.message, unsaved_of(result.output))))
    reason = own_reason(result.output)
    if not reason or reason in message:
        return message
    return f"{message} ({reason})" if message else reason


def remark_of(result: Result) -> str:
    """Return what is wrong with the output of an attempt, and the fix; '' for nothing."""
    kept = "its output is kept as text: " if result.output_format == TEXT else ""
    return f"{kept}{result.output_problem}" if result.output_problem else ""


def why_ended(result: Result) -> str:
    """As `message_of`, with the code of the error before it, and the remark on its output behind it."""
    said = message_of(result)
    if result.error is not None:
        said = f"{result.error.code}: {said}" if said else str(result.error.code)
    return "; ".join(filter(None, (said, remark_of(result))))


# What one ended attempt cost and came to, as the leader hands it to those that decide by it.
# Law: the name says which attempt, and who decided it; all else is as its record in results/ says, checked by
# nobody.


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """One attempt of one task. Durations in seconds, memory in MiB, times in RFC 3339; None: the record does not say.

    decider: the worker that ran it, or the leader that ended it. type: None also where the leader ended it and did
    not know. code: the error code; of MAX_RETRIES, the one behind it. estimated: its worker died, so duration_s is
    what the last heartbeat shows. budgets, budget: as the task says them.
    """

    id: str
    attempt: int
    decider: str
    status: str
    code: str | None = None
    type: str | None = None
    batch: str | None = None
    budgets: tuple[str, ...] = ()
    budget: dict[str, float] = field(default_factory=dict)
    exit_code: int | None = None
    duration_s: float = 0.0
    cpu_s: float | None = None
    frozen_s: float | None = None
    max_rss_mb: float | None = None
    tokens_used: float | None = None
    cost_usd: float | None = None
    started_at: str | None = None
    completed_at: str = ""
    estimated: bool = False

    @classmethod
    def of(cls, name: EndedName, result: Result, kind: str | None = None) -> EndedAttempt:
        """The attempt of that name, by its record. kind: the task's type, where the record has none."""
        error = result.error
        return cls(
            id=name.id,
            attempt=name.attempt,
            decider=name.decider,
            status=str(result.status),
            code=None if error is None else str(error.cause or error.code),
            type=result.type or kind,
            batch=result.batch,
            budgets=result.budgets,
            budget=dict(result.budget),
            exit_code=result.exit_code,
            duration_s=result.duration_s,
            cpu_s=result.cpu_s,
            frozen_s=result.frozen_s,
            max_rss_mb=result.max_rss_mb,
            tokens_used=result.tokens_used,
            cost_usd=result.cost_usd,
            started_at=result.started_at,
            completed_at=result.completed_at,
            estimated=result.estimated,
        )
