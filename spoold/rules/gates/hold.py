"""A hold of one task: it was dropped with one, or a person asked for it.

Law: no time ends a hold, and only a request about this very task makes the leader ask again: any number of held tasks
costs nothing. It takes tasks back from ready/, and touches none that runs.
"""

from __future__ import annotations

from collections.abc import Hashable

from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions, Facts, Held
from spoold.rules.gates.gate import TaskGate, Tasks, Wake
from spoold.rules.gates.requested import hold_of, is_released
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task while a hold stands, or while nothing has released one that it was dropped with."""
    asked = hold_of(facts.requested)
    if asked is not None:
        return Wait("hold", f"it is held {asked.told}")
    why = conditions.asks("hold")
    if why is None or is_released(facts.requested):
        return PASS
    return Wait("hold", f"it was submitted on hold: {why}")


def _asks(task: Task) -> Hashable | None:
    return task.hold


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return f"`spool release {held.id}`"


GATE = TaskGate(
    "hold",
    "no hold of the task stands, and one that it was dropped with was released",
    frozenset({Wake.REQUEST}),
    _change,
    judge,
    tasks=Tasks.NAMED,
    asks=_asks,
    holds_ready=True,
)
