"""What holds for one task: its own wishes, over the settings of its type, over the spool's."""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.order import rank_of
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon to try again. Times in seconds; on and never are exit codes."""

    max: int
    backoff_s: float
    factor: float
    jitter: float
    max_backoff_s: float
    crash_limit: int
    on: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()


def retry_policy(task: Task, settings: Settings) -> RetryPolicy:
    """The retry policy of a task."""
    own, base = task.retry, settings.retry
    wishes = (own.max, task.max_retries, settings.of(task.kind).max_retries)
    return RetryPolicy(
        max=next((wish for wish in wishes if wish is not None), base.max),
        backoff_s=base.backoff_s if own.backoff_s is None else own.backoff_s,
        factor=base.factor if own.factor is None else own.factor,
        jitter=base.jitter if own.jitter is None else own.jitter,
        max_backoff_s=base.max_backoff_s,
        crash_limit=base.crash_limit,
        on=frozenset(own.on),
        never=frozenset(own.never),
    )


def timeout_s(task: Task, settings: Settings) -> float:
    """Seconds that one attempt may take."""
    return task.timeout or settings.of(task.kind).timeout or settings.timeout


def rank(task: Task, settings: Settings) -> int:
    """The place of its priority in names: smaller is more urgent."""
    if task.priority is not None:
        return rank_of(task.priority)
    return rank_of(settings.of(task.kind).priority or 0)
