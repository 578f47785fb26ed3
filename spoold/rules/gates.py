"""May this task run now? Each gate answers Pass, Wait(reason, until) or Refuse(reason), and all are asked here.

The leader asks before it moves a task to ready/, `spool explain` asks to tell a person, and both get the same words.
Adding a gate: a function here, its place in `judge`, its line in `spool_layout.md`, its test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from spoold.protocol.result import Code
from spoold.protocol.task import Task


class Parent(StrEnum):
    """What is known of a dependency."""

    UNKNOWN = "unknown"
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing stands in the way."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now. gate names which one; until is a moment on the asker's wall clock (s since 1970) if known."""

    gate: str
    reason: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never: the task fails with this code."""

    gate: str
    code: Code
    reason: str


Verdict = Pass | Wait | Refuse
PASS = Pass()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a task itself asks for before it may run. Times in seconds since 1970 (wall clock)."""

    needs: tuple[str, ...] = ()
    needs_ended: tuple[str, ...] = ()
    not_before: float | None = None
    deadline: float | None = None


NO_CONDITIONS = Conditions()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the asker knows. now in seconds since 1970; rest_s: how long the retry delay still lasts.

    The rest is a length and not a moment, because the leader counts it on a clock that nobody can set.
    """

    now: float
    parent: Callable[[str], Parent]
    rest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What the asker knows of a type: active = tasks of it in ready/ and claimed/."""

    paused: frozenset[str] = field(default_factory=frozenset)
    halted: bool = False
    limit: int | None = None
    active: int = 0


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """The verdict of the gates that look at the task alone; the first that does not pass speaks."""
    if conditions is NO_CONDITIONS and facts.rest_s <= 0:
        return PASS
    gates = (deadline, dependencies, dependencies_ended, not_before)
    verdicts = [*(gate(conditions, facts) for gate in gates), retry_delay(facts)]
    refused = next((v for v in verdicts if isinstance(v, Refuse)), None)
    return refused or next((v for v in verdicts if isinstance(v, Wait)), PASS)


def deadline(conditions: Conditions, facts: Facts) -> Verdict:
    """The task's own last moment, by the leader's wall clock."""
    if conditions.deadline is not None and facts.now >= conditions.deadline:
        return Refuse("deadline", Code.DEADLINE, "its deadline is over")
    return PASS


def dependencies(conditions: Conditions, facts: Facts) -> Verdict:
    """Every dependency has completed; one that failed fails this task."""
    failed = [p for p in conditions.needs if facts.parent(p) is Parent.FAILED]
    if failed:
        return Refuse("dependencies", Code.DEPENDENCY_FAILED, f"dependency {_some(failed)} failed")
    return _still_open("dependencies", conditions.needs, facts, {Parent.COMPLETED})


def dependencies_ended(conditions: Conditions, facts: Facts) -> Verdict:
    """Every `after_any` task has ended, either way."""
    return _still_open("after_any", conditions.needs_ended, facts, {Parent.COMPLETED, Parent.FAILED})


def not_before(conditions: Conditions, facts: Facts) -> Verdict:
    """The task's own first moment, by the leader's wall clock."""
    if conditions.not_before is not None and facts.now < conditions.not_before:
        return Wait("not_before", "its not_before has not come yet", conditions.not_before)
    return PASS


def retry_delay(facts: Facts) -> Verdict:
    """The rest between two attempts."""
    if facts.rest_s > 0:
        return Wait("retry_delay", "it rests before its next attempt", facts.now + facts.rest_s)
    return PASS


def conditions_of(task: Task) -> Conditions:
    """What a task asks for before it may run."""
    if not task.conditional:
        return NO_CONDITIONS
    return Conditions(
        needs=task.dependencies,
        needs_ended=task.after_any,
        not_before=task.not_before.timestamp() if task.not_before else None,
        deadline=task.deadline.timestamp() if task.deadline else None,
    )


def judge_type(kind: str, facts: LaneFacts) -> Verdict:
    """The verdict of the gates that look at a whole type: halt, pause, concurrency limit."""
    if facts.halted:
        return Wait("halt", "the spool is halted; `spool resume` lets it go on")
    if "+all" in facts.paused:
        return Wait("pause", "the whole spool is paused; `spool resume` lets it go on")
    if kind in facts.paused:
        return Wait("pause", f"type {kind} is paused; `spool resume {kind}` lets it go on")
    if facts.limit is not None and facts.active >= facts.limit:
        reason = f"type {kind} runs at its limit: {facts.active} of [types.{kind}] max_concurrent = {facts.limit}"
        return Wait("limit", reason)
    return PASS


def _still_open(gate: str, parents: tuple[str, ...], facts: Facts, done: set[Parent]) -> Verdict:
    states = {p: facts.parent(p) for p in parents}
    unknown = [p for p, state in states.items() if state is Parent.UNKNOWN]
    still = [p for p, state in states.items() if state not in done and state is not Parent.UNKNOWN]
    if unknown:
        return Wait(gate, f"it waits for {_some(unknown)}, which nobody has submitted yet")
    return Wait(gate, f"it waits for {_some(still)} to end") if still else PASS


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"{', '.join(ids[:3])}{more}"
