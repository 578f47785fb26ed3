"""The conclusion about an ended attempt, and its record: the fields of its result, with the sum over all attempts.

Law: a record has every field of `protocol.result.Result`, made of values that are checked already, since no model
checks it before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spoold.protocol import quantity
from spoold.protocol.result import Status, Total
from spoold.rules.attempts import retry
from spoold.rules.attempts.accounts import plus
from spoold.rules.attempts.outcome import Outcome
from spoold.store.store import stamp
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.output import Output

_SUMMED = ("duration_s", "cpu_s", "tokens_used", "cost_usd")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion about an ended attempt: its outcome, the decision of the retry rule, and its output.

    before: the total of the attempts before it; summed: whether that could be read; overlaps: which other attempts
    changed the same files at the same time.
    """

    outcome: Outcome
    decision: retry.Again | retry.End
    output: Output
    before: Total | None = None
    summed: bool = True
    overlaps: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Spent:
    """The total of the attempts that this worker has committed since it started. Times in seconds."""

    attempts: int = 0
    duration_s: float = 0.0
    cpu_s: float = 0.0
    tokens_used: float = 0
    cost_usd: float = 0

    def add(self, attempt: Attempt, output: Output) -> None:
        """Add one attempt."""
        self.attempts += 1
        if attempt.ending is not None:
            self.duration_s = quantity.plus(self.duration_s, attempt.ending.duration_s)
            self.cpu_s = quantity.plus(self.cpu_s, attempt.ending.cpu_s or 0.0)
        self.tokens_used = quantity.plus(self.tokens_used, output.figures.tokens_used or 0)
        self.cost_usd = quantity.plus(self.cost_usd, output.figures.cost_usd or 0)

    def total(self) -> Total:
        """Return the total as a heartbeat says it."""
        return Total(
            attempts=self.attempts,
            duration_s=round(self.duration_s, 3),
            cpu_s=round(self.cpu_s, 3),
            tokens_used=self.tokens_used,
            cost_usd=round(self.cost_usd, 9),
        )


def record_of(attempt: Attempt, verdict: Conclusion, now: str, uses: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a Result, made of values that are checked already, so no model need check them again.

    uses: the units that it used of each limit.
    """
    ending, outcome, output = attempt.ending, verdict.outcome, verdict.output
    error = verdict.decision.error
    result = {
        "task_id": attempt.name.id,
        "attempt": attempt.name.attempt,
        "worker_id": attempt.worker,
        "status": outcome.status,
        "started_at": stamp(ending.started_at if ending else attempt.started_at),
        "completed_at": stamp(ending.ended_at) if ending else now,
        "duration_s": round(ending.duration_s, 6) if ending else 0.0,
        "exit_code": ending.exit_code if ending else None,
        "output": output.value,
        "output_format": output.format,
        "output_problem": output.problem,
        "error": error.model_dump(mode="json") if error else None,
        "tokens_used": output.figures.tokens_used,
        "cost_usd": output.figures.cost_usd,
        "log": attempt.log.rpartition("/")[2] if attempt.logged or attempt.frozen_s else None,
        "type": attempt.kind,
        "instead_of": attempt.lane.instead_of or None,
        "batch": attempt.task.batch,
        "budgets": attempt.task.budgets,
        "budget": attempt.task.reserves,
        "partial": outcome.status is not Status.SUCCESS and bool(output.value),
        "max_rss_mb": round(ending.max_rss_bytes / (1 << 20), 1) if ending and ending.max_rss_bytes else None,
        "frozen_s": round(ending.frozen_s, 3) if ending and ending.frozen_s else None,
        "cpu_s": round(ending.cpu_s, 6) if ending and ending.cpu_s is not None else None,
        "estimated": False,
        "changed_files": output.figures.changed_files or None,
        "files_overlap": verdict.overlaps or None,
        "total": None,
        "approval": attempt.approval,
        "questions": attempt.questions,
        "uses": dict(uses) or None,
    }
    if attempt.name.attempt > 1 and verdict.summed:
        own = Total.model_validate({"attempts": 1, **{name: result[name] for name in _SUMMED}})
        total = own if verdict.before is None else plus(verdict.before, own)
        result["total"] = total.model_dump(mode="json")
    return result
