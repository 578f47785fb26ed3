"""All gates, in the order in which they speak, and the questions of the leader and `explain` to them.

Law: gates are asked only through here. The order counts: the first gate to refuse speaks, else the first to wait.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spoold.protocol.task import Task
from spoold.rules.gates import (
    approval_gate,
    breaker_gate,
    budget_gate,
    dependency_gates,
    limit_gates,
    lock_gate,
    stop_gates,
    time_gates,
)
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Held, Known, TypeFacts
from spoold.rules.gates.gate import PASS, Gate, Pass, Refuse, TaskGate, Tasks, TypeGate, Verdict, Wait, Wake

# A new gate of spoold's own gets its line here; any other is registered.
TASK_GATES: list[TaskGate] = [
    dependency_gates.CYCLE,
    time_gates.DEADLINE,
    stop_gates.HOLD,
    dependency_gates.COMPLETED,
    dependency_gates.ENDED,
    dependency_gates.AFTER_FAILED,
    dependency_gates.AFTER_BATCH,
    time_gates.NOT_BEFORE,
    time_gates.RETRY_DELAY,
    budget_gate.GATE,
    lock_gate.GATE,
    approval_gate.GATE,  # the last, so that people are asked when nothing else is in the way
]
TYPE_GATES: list[TypeGate] = [
    stop_gates.HALT,
    stop_gates.PAUSE,
    limit_gates.WORKER_GATE,
    limit_gates.QUOTA_GATE,
    breaker_gate.GATE,
    limit_gates.LIMIT_GATE,
    limit_gates.RATE_GATE,
    limit_gates.CLASS_GATE,
]
# The members of TASK_GATES that look at every task. While there is none, a task without conditions costs nothing.
OF_EVERY_TASK: list[TaskGate] = []
# Those that look at every task of some types. While they name no type, such a task costs nothing either.
OF_SOME_TYPES: list[TaskGate] = [budget_gate.GATE]

# The gates that are asked for a task in every step, each with the task's group.
Groups = tuple[tuple[str, Hashable], ...]


def register(gate: TaskGate | TypeGate) -> None:
    """Add a gate behind the others. Do it before a node starts: tasks that a leader knows are not grouped again.

    Errors: ValueError if the name is taken, or if nothing would ask the gate again.
    """
    if gate.name in {other.name for other in (*TASK_GATES, *TYPE_GATES)}:
        raise ValueError(f"there is a gate {gate.name} already; give this one another name")
    if gate.change is not None and not gate.wakes:
        raise ValueError(f"the gate {gate.name} may wait and has no wakes, so nothing would ask it again; name one")
    if isinstance(gate, TypeGate):
        if Wake.STEP not in gate.wakes:
            raise ValueError(f"the gate {gate.name} is of a type, and those are asked in every step; name Wake.STEP")
        TYPE_GATES.append(gate)
        return
    if Wake.PARENT in gate.wakes and gate.parents is None:
        raise ValueError(f"the gate {gate.name} wakes with its parents; give it `parents`, which names them")
    TASK_GATES.append(gate)
    for some in _lists_of(gate):
        some.append(gate)


def unregister(gate: TaskGate | TypeGate) -> None:
    """Take a gate out again. Errors: ValueError if it is not registered."""
    if isinstance(gate, TypeGate):
        TYPE_GATES.remove(gate)
        return
    TASK_GATES.remove(gate)
    for some in _lists_of(gate):
        some.remove(gate)


def _lists_of(gate: TaskGate) -> Iterator[list[TaskGate]]:
    if gate.tasks is Tasks.ALL:
        yield OF_EVERY_TASK
    if gate.tasks is Tasks.DRAWING:
        yield OF_SOME_TYPES


@contextmanager
def registered(*gates: TaskGate | TypeGate) -> Iterator[None]:
    """Register these gates, too, for the time of the block."""
    done: list[TaskGate | TypeGate] = []
    try:
        for gate in gates:
            register(gate)
            done.append(gate)
        yield
    finally:
        for gate in done:
            unregister(gate)


def conditions_of(task: Task) -> Conditions:
    """The task's own conditions for running. A batch is one where a budget is per batch, and a parent where one is
    drawn on.
    """
    if not task.conditional and task.batch is None and task.parent is None:
        return NO_CONDITIONS
    asked = ((gate.name, gate.asks(task)) for gate in TASK_GATES if gate.asks is not None)
    return Conditions(
        needs=task.dependencies,
        needs_ended=task.after_any,
        needs_failed=task.after_failed,
        needs_batch=task.after_batch or "",
        not_before=task.not_before.timestamp() if task.not_before else None,
        deadline=task.deadline.timestamp() if task.deadline else None,
        child=task.parent is not None,
        more=tuple((name, value) for name, value in asked if value is not None),
    )


def gather(known: Known) -> Mapping[str, Any]:
    """The facts that the gates bring to the `more` of all facts."""
    gates: list[Gate] = [*TASK_GATES, *TYPE_GATES]
    return {gate.name: gate.gather(known) for gate in gates if gate.gather is not None}


def typed(gathered: Mapping[str, Any]) -> frozenset[str]:
    """The types all of whose tasks some gate looks at."""
    named = (gate.kinds(gathered.get(gate.name)) for gate in OF_SOME_TYPES if gate.kinds is not None)
    return frozenset().union(*named)


def books(name: str) -> bool:
    """Whether the gate of this name counts the tasks that go to ready/."""
    return any(gate.name == name and gate.book is not None for gate in TASK_GATES)


def book(groups: Groups, conditions: Conditions, facts: Facts) -> None:
    """Have the gates count that a task of these groups goes to ready/."""
    names = {name for name, _ in groups}
    for gate in TASK_GATES:
        if gate.book is not None and gate.name in names:
            gate.book(conditions, facts)


def unbook(conditions: Conditions, facts: Facts, groups: Groups | None = None) -> None:
    """Have the gates count that a ready task holds nothing more. groups: None for all gates."""
    names = None if groups is None else {name for name, _ in groups}
    for gate in TASK_GATES:
        if gate.unbook is not None and (names is None or gate.name in names):
            gate.unbook(conditions, facts)


def rebook(conditions: Conditions, facts: Facts) -> None:
    """Undo `unbook`."""
    for gate in TASK_GATES:
        if gate.unbook is not None and gate.book is not None:
            gate.book(conditions, facts)


def holds(gate: str, mine: tuple[Conditions, Facts], other: tuple[Conditions, Facts]) -> bool:
    """Whether another task, which is ready, holds what this one wants of the gate."""
    found = next((one for one in TASK_GATES if one.name == gate), None)
    return found is not None and found.holds is not None and found.holds(*mine, *other)


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """The verdict of the gates that look at the task alone: the first to refuse speaks, else the first to wait."""
    return _verdict(_looking_at(conditions, facts), conditions, facts)


def judge_arrived(conditions: Conditions, facts: Facts) -> Verdict:
    """As `judge`, by the gates that are not asked in every step, but at a time or when a parent ends."""
    gates = [gate for gate in _looking_at(conditions, facts) if Wake.STEP not in gate.wakes]
    return _verdict(gates, conditions, facts)


def judge_step(groups: Groups, conditions: Conditions, facts: Facts) -> Verdict:
    """As `judge`, by the gates that are asked for a task of these groups in every step."""
    return _verdict(_of(groups), conditions, facts)


def judge_each(groups: Groups, conditions: Conditions, facts: Facts) -> list[Verdict]:
    """As `judge_step`, the verdict of each gate."""
    return [gate.judge(conditions, facts) for gate in _of(groups)]


def _of(groups: Groups) -> list[TaskGate]:
    names = {name for name, _ in groups}
    return [gate for gate in TASK_GATES if gate.name in names]


def _verdict(gates: list[TaskGate], conditions: Conditions, facts: Facts) -> Verdict:
    verdicts = [gate.judge(conditions, facts) for gate in gates]
    refused = next((verdict for verdict in verdicts if isinstance(verdict, Refuse)), None)
    return refused or next((verdict for verdict in verdicts if isinstance(verdict, Wait)), PASS)


def judge_ready(conditions: Conditions, facts: Facts) -> Verdict:
    """As `judge`, for a task in ready/, where only some gates still hold it."""
    verdicts = (gate.judge(conditions, facts) for gate in _looking_at(conditions, facts) if gate.holds_ready)
    return next((verdict for verdict in verdicts if not isinstance(verdict, Pass)), PASS)


def parts(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    """Each gate's own verdict on the task, in pieces if it has them, with the parents concerned."""
    for gate in _looking_at(conditions, facts):
        if gate.parts is None:
            yield gate.judge(conditions, facts), ()
        else:
            yield from gate.parts(conditions, facts)


def _looking_at(conditions: Conditions, facts: Facts) -> list[TaskGate]:
    """The gates that look at a task: nearly every task of a huge backlog has no conditions, and none looks at it."""
    if conditions is not NO_CONDITIONS:
        gates = TASK_GATES
    elif facts.rest_s <= 0 and not facts.requested:
        gates = [*OF_EVERY_TASK, *OF_SOME_TYPES]
    else:
        gates = [gate for gate in TASK_GATES if gate.tasks is not Tasks.ASKING]
    return [gate for gate in gates if gate.group is None or gate.group(conditions, facts) is not None]


def groups(conditions: Conditions, facts: Facts) -> Groups:
    """The gates that are asked for this task in every step, each with the task's group."""
    found: list[tuple[str, Hashable]] = []
    for gate in _looking_at(conditions, facts):
        if Wake.STEP in gate.wakes:
            group = (facts.kind, conditions) if gate.group is None else gate.group(conditions, facts)
            found.append((gate.name, group))
    return tuple(found)


def wakes_of(wait: Wait) -> frozenset[Wake]:
    """The wakes of the gate that says not now; none if it is not known here."""
    gate = _named(wait.gate)
    return frozenset() if gate is None else gate.wakes


def parents_of(conditions: Conditions) -> frozenset[str]:
    """The tasks whose ends wake a gate of this one."""
    named = (gate.parents(conditions) for gate in TASK_GATES if gate.parents is not None)
    return frozenset(parent for some in named for parent in some)


def moments(conditions: Conditions) -> Iterator[float]:
    """When (s since 1970) the answer of a gate that passes now may change."""
    for gate in TASK_GATES:
        if gate.moment is not None and (moment := gate.moment(conditions)) is not None:
            yield moment


def judge_type(kind: str, facts: TypeFacts, *, ready: bool = False) -> Verdict:
    """The verdict of the gates that look at a whole type: the first that does not pass speaks.

    ready: ask only the gates that also hold tasks that are in ready/ already.
    """
    for gate in TYPE_GATES:
        verdict = gate.judges(kind, facts, ready=ready)
        if not isinstance(verdict, Pass):
            return verdict
    return PASS


def change(held: Held, wait: Wait, about: tuple[str, ...] = ()) -> str:
    """The change that a person can make about a gate that says not now, even one that only a later release knows."""
    gate = _named(wait.gate)
    if gate is None or gate.change is None:
        return f"the gate {wait.gate} is not known here; ask with the release of spoold that the leader runs"
    return gate.change(held, wait, about)


def detail(held: Held, wait: Wait) -> str:
    """More facts for a person about a gate that says not now; '' for none."""
    gate = _named(wait.gate)
    return "" if gate is None or gate.detail is None else gate.detail(held, wait)


def _named(name: str) -> Gate | None:
    gates: Iterable[Gate] = (*TASK_GATES, *TYPE_GATES)
    return next((gate for gate in gates if gate.name == name), None)
