"""All gates, in the order in which they speak. A new gate is a file beside this one and its line here."""

from __future__ import annotations

from collections.abc import Iterator

from spoold.rules.gates import deadline, halt, limit, not_before, parents, pause, retry_delay
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Facts, Held, TypeFacts
from spoold.rules.gates.gate import Gate, TaskGate, TypeGate
from spoold.rules.gates.verdicts import PASS, Refuse, Verdict, Wait

TASK_GATES: list[TaskGate] = [
    deadline.GATE,
    parents.COMPLETED,
    parents.ENDED,
    not_before.GATE,
    retry_delay.GATE,
]
TYPE_GATES: list[TypeGate] = [
    halt.GATE,
    pause.GATE,
    limit.GATE,
]


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """The verdict of the gates that look at the task alone: the first to refuse speaks, else the first to wait."""
    if conditions is NO_CONDITIONS and facts.rest_s <= 0:
        return PASS  # as each of them would say; nearly every task of a huge backlog is one of these
    verdicts = [gate.judge(conditions, facts) for gate in TASK_GATES]
    refused = next((verdict for verdict in verdicts if isinstance(verdict, Refuse)), None)
    return refused or next((verdict for verdict in verdicts if isinstance(verdict, Wait)), PASS)


def parts(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    """Each gate's own verdict on the task, in pieces where it has them, with the parents that it is about."""
    for gate in TASK_GATES:
        if gate.parts is None:
            yield gate.judge(conditions, facts), ()
        else:
            yield from gate.parts(conditions, facts)


def judge_type(kind: str, facts: TypeFacts) -> Verdict:
    """The verdict of the gates that look at a whole type: the first that does not pass speaks."""
    for gate in TYPE_GATES:
        verdict = gate.judge(kind, facts)
        if verdict is not PASS:
            return verdict
    return PASS


def change(held: Held, wait: Wait, about: tuple[str, ...] = ()) -> str:
    """What a person can do about a gate that says not now; also about one that only a later release knows."""
    gates: list[Gate] = [*TASK_GATES, *TYPE_GATES]
    gate = next((gate for gate in gates if gate.name == wait.gate), None)
    if gate is None or gate.change is None:
        return f"nothing is known here of the gate {wait.gate}; ask with the release of spoold that the leader runs"
    return gate.change(held, wait, about)
