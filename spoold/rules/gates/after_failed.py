"""The tasks of which one must have failed: for compensation and clean-up.

Law: the task never starts before one of them has failed, and is skipped only when all have ended and none has failed.
A task that was skipped has ended, and has not failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.protocol.amount import some
from spoold.protocol.result import Code
from spoold.rules.gates.facts import OVER, Conditions, Facts, Parent
from spoold.rules.gates.gate import TaskGate
from spoold.rules.gates.parents import NAMED, WAKES, by_kind, change, still_open
from spoold.rules.gates.verdicts import PASS, Pass, Refuse, Verdict


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until one of them has failed; when all have ended without a failure, it is skipped."""
    named = conditions.needs_failed
    if not named or any(facts.parent(p) is Parent.FAILED for p in named):
        return PASS
    waits = still_open("after_failed", named, facts, OVER, "end, and runs if one of them has failed")
    if not isinstance(waits, Pass):
        return waits
    which = (
        f"{some(list(named), NAMED)} did not fail" if len(named) < 2 else f"none of {some(list(named), NAMED)} failed"
    )
    return Refuse("after_failed", Code.SKIPPED, which)


def _parts(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    if isinstance(judge(conditions, facts), Pass):
        return
    for parents in by_kind(conditions.needs_failed, facts):
        if parents:
            yield judge(Conditions(needs_failed=parents), facts), parents


def _parents(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs_failed


GATE = TaskGate(
    "after_failed",
    "one of the `after_failed` tasks has failed",
    WAKES,
    change,
    judge,
    _parts,
    parents=_parents,
)
