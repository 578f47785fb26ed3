"""Laws of holds and approvals, broken: who is let go, for which answer, and what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spoold.master.people import task_requests
from spoold.master.people.task_requests import TaskRequests
from spoold.protocol.approval import Approval
from spoold.protocol.names import TaskName
from spoold.protocol.request import Request, Verb
from spoold.rules.gates import approval_gate, registry, standing_requests, stop_gates
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.scheduling import waiting_task
from spoold.store import approval_answers
from spoold.system.filesystem import FileSystem
from spoold.worker.attempts import starting
from tests.sim.mutation import Mutations, Swap

approvals = Mutations(world="approvals")


def _without(gate: Any) -> Swap:
    return (registry, "TASK_GATES", [one for one in registry.TASK_GATES if one is not gate])


def _decided_as(decision: Any) -> list[Swap]:
    """What decides, for the leader and for the worker."""
    return [
        (module, "decision", decision) for module in (approval_gate, task_requests, waiting_task, approval_answers)
    ]


@approvals.add(
    "nothing starts before it was approved", "Nobody is waited for, neither by the leader nor by the worker."
)
def approval_not_asked() -> list[Swap]:
    def yes(fs: FileSystem, name: TaskName, asked: Approval, token: str) -> Requested:
        return Requested(Request(Verb.APPROVE, name.id, "1"))

    return [_without(approval_gate.GATE), (starting, "decided", yes)]


@approvals.add("what is held waits", "The gate of holds is always open.")
def hold_not_asked() -> list[Swap]:
    return [_without(stop_gates.HOLD)]


@approvals.add("a rejected task never starts", "A rejection is taken for an approval.")
def rejection_is_an_approval() -> list[Swap]:
    decision = standing_requests.decision

    def mild(requests: Sequence[Requested], asked: Approval, order: str) -> Requested | None:
        found = decision(requests, asked, order)
        if found is None or found.request.verb is not Verb.REJECT:
            return found
        return replace(found, request=replace(found.request, verb=Verb.APPROVE))

    return _decided_as(mild)


@approvals.add("an answer is about one round", "An approval of an earlier round counts after a retry, too.")
def round_does_not_count() -> list[Swap]:
    decision = standing_requests.decision
    kept: dict[str, Requested] = {}

    def any_round(requests: Sequence[Requested], asked: Approval, order: str) -> Requested | None:
        found = decision([replace(one, order="") for one in requests], asked, order)
        for one in requests:
            kept.setdefault(one.request.target, one) if one.request.verb is Verb.APPROVE else None
        target = requests[0].request.target if requests else ""
        return found or kept.get(target)

    return _decided_as(any_round)


@approvals.add("what was sent back runs again", "A redo gives the task its new round, and runs nothing again.")
def redo_runs_nothing() -> list[Swap]:
    return [(standing_requests, "left", lambda one, seen: [])]


@approvals.add("a redo is about one round", "A redo of an earlier round is done again in the next one.")
def redo_of_any_round() -> list[Swap]:
    def of_any(requests: Sequence[Requested], order: str) -> Requested | None:
        return next(filter(standing_requests.is_redo, requests), None)

    return [(standing_requests, "standing", of_any)]


@approvals.add("nothing is asked after the end", "What was asked about a task is left when the task has ended.")
def requests_left_at_the_end() -> list[Swap]:
    return [(TaskRequests, "_end", lambda self, request: None)]


@approvals.add("a task that waits for people is let go when they answer", "An answer is not told to the gates.")
def answer_not_heard() -> list[Swap]:
    return [(TaskRequests, "_publish", lambda self, desk, task_key: None)]


@approvals.add("the result says what was answered", "The result says the first choice, whatever was answered.")
def answer_not_recorded() -> list[Swap]:
    record = standing_requests.record

    def made_up(given: Requested, ask: str, choices: Sequence[str]) -> dict[str, Any]:
        return {**record(given, ask, choices), "answer": "green"}

    return [(starting, "record", made_up)]


@approvals.add("people are asked once", "A question is put although one stands.", harmless=True)
def asked_again() -> list[Swap]:
    return [(task_requests, "question", lambda requests, order: None)]
