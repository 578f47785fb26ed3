"""What a report says in numbers.

Law: counts are of all tasks of the scene, and equal what `spool status --batch` and `spool show` say of them; where a
table shows only some, it says of how many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from spoold.pictures.scene import Attempt, Scene, Task
from spoold.protocol.lifecycle import ENDED, SHOWN, State

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
