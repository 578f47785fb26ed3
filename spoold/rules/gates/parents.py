"""The tasks that must have ended before: `dependencies` with success, `after_any` in either way.

Law: a parent that is not known yet is waited for, since tasks may arrive in any order. Only a failed or a
skipped parent refuses a task, and only as one of its `dependencies`. Behind a skipped one the task is skipped, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from spoold.protocol.amount import some
from spoold.protocol.result import Code
from spoold.rules.gates.facts import OVER, Conditions, Facts, Held, Parent
from spoold.rules.gates.gate import TaskGate, Wake
from spoold.rules.gates.verdicts import PASS, Refuse, Verdict, Wait

NAMED = 3
WAKES = frozenset({Wake.PARENT})


def judge_completed(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until every dependency has completed. One that failed fails it, a skipped one skips it."""
    failed = [p for p in conditions.needs if facts.parent(p) is Parent.FAILED]
    if failed:
        return Refuse("dependencies", Code.DEPENDENCY_FAILED, f"dependency {some(failed, NAMED)} failed")
    skipped = [p for p in conditions.needs if facts.parent(p) is Parent.SKIPPED]
    if skipped:
        return Refuse("dependencies", Code.SKIPPED, f"dependency {some(skipped, NAMED)} was skipped")
    return still_open("dependencies", conditions.needs, facts, {Parent.COMPLETED}, "complete")


def judge_ended(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until every `after_any` task has ended, either way."""
    return still_open("after_any", conditions.needs_ended, facts, OVER, "end")


def still_open(gate: str, parents: tuple[str, ...], facts: Facts, done: Set[Parent], verb: str) -> Verdict:
    """Wait for the parents that are in none of these states; those that are not known yet are named first."""
    states = {p: facts.parent(p) for p in parents}
    unknown = [p for p, state in states.items() if state is Parent.UNKNOWN]
    still = [p for p, state in states.items() if state not in done and state is not Parent.UNKNOWN]
    if unknown:
        return Wait(gate, f"it waits for {some(unknown, NAMED)}, which this spool does not know")
    return Wait(gate, f"it waits for {some(still, NAMED)} to {verb}") if still else PASS


def _completed_by_kind(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    for parents in by_kind(conditions.needs, facts):
        yield judge_completed(Conditions(needs=parents), facts), parents


def _ended_by_kind(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    for parents in by_kind(conditions.needs_ended, facts):
        yield judge_ended(Conditions(needs_ended=parents), facts), parents


def by_kind(parents: tuple[str, ...], facts: Facts) -> Iterator[tuple[str, ...]]:
    """The unknown parents, then the open ones: a person has a different fix for each."""
    for kind in (Parent.UNKNOWN, Parent.OPEN):
        yield tuple(p for p in parents if facts.parent(p) is kind)


def change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    """The fix for parents that are all unknown, or all still open."""
    if any(held.parents.get(p) is Parent.OPEN for p in about):
        return some([f"{p} is {held.places.get(p, 'open')} (`spool explain {p}`)" for p in about])
    named = [f"{p} (it was {held.places[p]})" if p in held.places else p for p in about]
    return f"submit {some(named)}, or cancel this task and submit it without"


def _needs(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs


def _needs_ended(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs_ended


COMPLETED = TaskGate(
    "dependencies",
    "all dependencies are completed",
    WAKES,
    change,
    judge_completed,
    _completed_by_kind,
    parents=_needs,
)
ENDED = TaskGate(
    "after_any",
    "all `after_any` tasks have ended",
    WAKES,
    change,
    judge_ended,
    _ended_by_kind,
    parents=_needs_ended,
)
