"""The batch of which every task must have ended.

A batch is a parent under a name that no task can have, so it wakes the tasks that wait for it as any parent does. Who
asks knows its state: UNKNOWN while no task of it was seen, OPEN while one has not ended or it is not sure that all
have, COMPLETED when all have ended, either way.

Law: a batch that is not known yet is waited for, as a parent is. Neither its failures nor its absence refuse a task.
"""

from __future__ import annotations

from spoold.protocol.names import key
from spoold.rules.gates.facts import Conditions, Facts, Held, Parent
from spoold.rules.gates.gate import TaskGate
from spoold.rules.gates.parents import WAKES
from spoold.rules.gates.verdicts import PASS, Verdict, Wait

# No id holds a colon.
_BATCH = "batch:"


def parent_of(batch: str) -> str:
    """The name under which a batch is a parent."""
    return f"{_BATCH}{key(batch)}"


def batch_in(parent: str) -> str | None:
    """The batch (its key) that a parent stands for; None for a task."""
    return parent.removeprefix(_BATCH) if parent.startswith(_BATCH) else None


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until all tasks of the batch have ended."""
    batch = conditions.needs_batch
    if not batch:
        return PASS
    state = facts.parent(parent_of(batch))
    if state is Parent.UNKNOWN:
        return Wait("after_batch", f"it waits for batch {batch}, of which no task is known yet")
    return (
        PASS if state is Parent.COMPLETED else Wait("after_batch", f"it waits for all tasks of batch {batch} to end")
    )


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    known = next((parent for parent, state in held.parents.items() if batch_in(parent) and state is Parent.OPEN), "")
    batch = batch_in(known)
    if batch is None:
        return "submit a task of that batch, or cancel this task and submit it without after_batch"
    return f"it runs when they have ended: `spool ls --batch {batch}` shows them"


def _detail(held: Held, wait: Wait) -> str:
    """How many of them have not ended, and a few of them."""
    return next((words for parent, words in held.places.items() if batch_in(parent)), "")


def _parents(conditions: Conditions) -> tuple[str, ...]:
    return (parent_of(conditions.needs_batch),) if conditions.needs_batch else ()


GATE = TaskGate(
    "after_batch",
    "all tasks of the `after_batch` batch have ended",
    WAKES,
    _change,
    judge,
    detail=_detail,
    parents=_parents,
)
