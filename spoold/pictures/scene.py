"""What a picture shows: tasks, what each waits for, and all its attempts.

Law: values only. Moments are seconds since 1970, by the clock of the node that wrote them; None where nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.result import Total

# The state of a task that others wait for and that is nowhere in the spool.
UNKNOWN = "unknown"
# The status of an attempt that has no record yet.
RUNNING = "running"


class Bond(StrEnum):
    """Why one task waits for another: for its success, its end, its failure, or for all of a batch."""

    SUCCESS = "dependencies"
    END = "after_any"
    FAILURE = "after_failed"
    BATCH = "after_batch"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a task waits for. key: of the task, as `Task.key`."""

    key: str
    bond: Bond = Bond.SUCCESS


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, as its record says; for one that runs, as the last heartbeat of its worker says.

    end: None while it runs. code: of the error, the cause behind MAX_RETRIES; '' for a success. duration_s is
    measured, and not the difference of the moments. model: that answered its questions, '' where nobody says.
    """

    number: int
    worker: str
    status: str
    begin: float | None = None
    end: float | None = None
    duration_s: float = 0.0
    code: str = ""
    message: str = ""
    exit_code: int | None = None
    tokens: float | None = None
    cost_usd: float | None = None
    model: str = ""
    estimated: bool = False

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.status == RUNNING


@dataclass(frozen=True, slots=True)
class Task:
    """One task. key: what `Need` names, unique in a scene. attempts: oldest first, the one that counts last.

    since: when it was admitted, or submitted. total: the sums of all attempts that ended. reason: as in `spool show`.
    cause: the code and the message for which it failed. outside: it is no part of the batch, others wait for it.
    wrote: the end of the log of its last attempt, only where that was asked for. tree: how many tasks it and all
    below it are, their tokens and their cost in USD; None for one without children.
    """

    key: str
    id: str
    state: str
    type: str = ""
    name: str = ""
    needs: tuple[Need, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    since: float | None = None
    total: Total | None = None
    reason: str = ""
    cause: tuple[str, str] | None = None
    archived: bool = False
    outside: bool = False
    wrote: str = ""
    tree: tuple[int, float | None, float | None] | None = None

    @property
    def ran_s(self) -> float:
        """How long its attempts took together, without the one that runs."""
        return 0.0 if self.total is None else self.total.duration_s


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture shows. title: what it is of; at: when it was looked at, in seconds since 1970.

    spent: by all attempts of tasks that ended, as in `spool status --batch`; None where none has.
    """

    title: str
    at: float
    tasks: tuple[Task, ...]
    spent: Total | None = None

    @property
    def inside(self) -> tuple[Task, ...]:
        """The tasks themselves, without those that others only wait for."""
        return tuple(task for task in self.tasks if not task.outside)
