"""What one ended attempt cost and came to, as the leader hands it to those that decide by it.

Law: the name says which attempt, and who decided it; all else is as its record in results/ says, checked by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.protocol.names import EndedName
from spoold.protocol.result import Result


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
