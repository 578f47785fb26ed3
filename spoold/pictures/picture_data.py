"""What a picture shows: tasks, what each waits for, and all its attempts; and what a report says of them in numbers.

Law: values only. Moments are seconds since 1970, by the clock of the node that wrote them; None where nobody knows.
Counts are of all tasks of the scene, and equal what `spool status --batch` and `spool show` say of them; where a
table shows only some, it says of how many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.lifecycle import ENDED, SHOWN, State
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


# What a report says in numbers.


IDS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """Tasks that failed for one cause: its code, the message of the first task, the tasks."""

    code: str
    message: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Spending:
    """What attempts came to: their number, seconds, tokens and USD. A figure that none of them has is None."""

    attempts: int
    duration_s: float
    tokens: float | None
    cost_usd: float | None


def counts(scene: Scene) -> dict[str, int]:
    """Return how many tasks are in each state, in the order of a task's life."""
    found = dict.fromkeys((state.value for state in SHOWN), 0)
    for task in scene.inside:
        found[task.state] += 1
    return found


def ended(scene: Scene) -> int:
    """Return how many tasks have ended, either way."""
    return sum(task.state in ENDED for task in scene.inside)


def archived(scene: Scene) -> int:
    """Return how many tasks are in the archive, where `spool status` does not count them."""
    return sum(task.archived for task in scene.inside)


def causes(scene: Scene) -> list[Cause]:
    """Return why tasks failed, the most frequent cause first."""
    found: defaultdict[str, list[Task]] = defaultdict(list)
    for task in failed(scene):
        found[_cause(task)[0]].append(task)
    made = [Cause(code, _cause(tasks[0])[1], tuple(tasks)) for code, tasks in found.items()]
    return sorted(made, key=lambda cause: (-len(cause.tasks), cause.code))


def failed(scene: Scene) -> list[Task]:
    """Return the tasks that failed or were rejected, in the order of the scene."""
    return [task for task in scene.inside if task.state in (State.FAILED, State.REJECTED)]


def telling(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks that failed, those first that ran: the others failed because of one of these, or did not begin."""
    return sorted(tasks, key=lambda task: not any(attempt.begin is not None for attempt in task.attempts))


def slowest(scene: Scene) -> list[Task]:
    """Return the tasks that have run, those whose attempts took longest first."""
    return sorted((task for task in scene.inside if task.ran_s > 0), key=lambda task: (-task.ran_s, task.key))


def dearest(scene: Scene) -> list[Task]:
    """Return the tasks that tell of tokens or cost, or whose children do, the dearest first."""
    spent = [(*_spent(task), task) for task in scene.inside]
    told = [one for one in spent if one[0] is not None or one[1] is not None]
    return [task for *_, task in sorted(told, key=lambda one: (-(one[0] or 0), -(one[1] or 0), one[2].key))]


def _spent(task: Task) -> tuple[float | None, float | None]:
    """The cost and the tokens of a task with all below it."""
    if task.tree is not None:
        return task.tree[2], task.tree[1]
    return (None, None) if task.total is None else (task.total.cost_usd, task.total.tokens_used)


def by_model(scene: Scene) -> dict[str, Spending]:
    """Return what the attempts that ended came to, by model; under '' those of which nobody knows the model.

    Only attempts that tell of tokens, cost or a model are counted.
    """
    found: defaultdict[str, list[Attempt]] = defaultdict(list)
    for task in scene.inside:
        for attempt in task.attempts:
            if not attempt.runs and (attempt.model or attempt.tokens is not None or attempt.cost_usd is not None):
                found[attempt.model].append(attempt)
    made = {model: spending(attempts) for model, attempts in found.items()}
    return dict(sorted(made.items(), key=lambda one: (-(one[1].cost_usd or 0), -(one[1].tokens or 0), one[0])))


def spending(attempts: Iterable[Attempt]) -> Spending:
    """Return what these attempts came to."""
    some = list(attempts)
    tokens = [one.tokens for one in some if one.tokens is not None]
    cost = [one.cost_usd for one in some if one.cost_usd is not None]
    return Spending(
        len(some),
        round(sum(one.duration_s for one in some), 6),
        sum(tokens) if tokens else None,
        round(sum(cost), 9) if cost else None,
    )


def _cause(task: Task) -> tuple[str, str]:
    return task.cause or ("unknown", "its result cannot be read")
