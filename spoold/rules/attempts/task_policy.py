"""The settings of one task.

Law: the task's own wish counts, else that of its type, else the spool's. The spool alone says how long a backoff may
be and how many crashes are allowed. The owner of a worker may cap a timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spoold.protocol.names import rank_of
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon to try again. Times in seconds; on and never are exit codes.

    memory_factor: the memory of the next attempt, relative to one that ran out of it.
    max_later: after so many attempts that charged nothing, exit code 75 is the end; max_retry_after_s: the longest
    backoff that an attempt may ask for.
    """

    max: int
    backoff_s: float
    factor: float
    jitter: float
    max_backoff_s: float
    crash_limit: int
    on: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()
    memory_factor: float = 1
    max_later: int = 100
    max_retry_after_s: float = 86_400


def retry_policy(task: Task, settings: Settings) -> RetryPolicy:
    """The retry policy of a task."""
    own, base = task.retry, settings.retry
    kind = settings.of(task.kind)
    wishes = (own.max, task.max_retries, kind.max_retries)
    factors = (own.memory_factor, kind.memory_factor, base.memory_factor)
    return RetryPolicy(
        max=next((wish for wish in wishes if wish is not None), base.max),
        backoff_s=base.backoff_s if own.backoff_s is None else own.backoff_s,
        factor=base.factor if own.factor is None else own.factor,
        jitter=base.jitter if own.jitter is None else own.jitter,
        max_backoff_s=base.max_backoff_s,
        crash_limit=base.crash_limit,
        on=frozenset(own.on),
        never=frozenset(own.never),
        memory_factor=next((factor for factor in factors if factor is not None), 1),
        max_later=base.max_later,
        max_retry_after_s=base.max_retry_after_s,
    )


def timeout_s(
    task: Task,
    settings: Settings,
    own: float | None = None,
    most: float | None = None,
    auto: Callable[[], float | None] = lambda: None,
) -> float:
    """Seconds that one attempt may take. own, most: what its handler says on this machine, if it has one.

    auto: what "auto" means for the type, asked only where that counts; None for the default.
    """
    wanted = task.timeout or own or settings.of(task.kind).timeout or settings.timeout
    wanted_s = (auto() or settings.timeout) if wanted == "auto" else wanted
    return min(wanted_s, most or wanted_s)


def rank(task: Task, settings: Settings) -> int:
    """The place of its priority in names: smaller is more urgent. A child is a little more urgent than its parent.

    A parent may wait for its children, on a machine that keeps its processes: so children go before tasks that would
    become such parents, too. Else the first child would run only after the last of a thousand parents had started.
    """
    own = settings.of(task.kind).priority or 0 if task.priority is None else task.priority
    return rank_of(own + task.level)
