"""A worker that is awake can run it: what nobody can run takes nothing that others could use.

Law: while no worker is awake, or one does not say what it can run, it holds nothing. It holds tasks in ready/, too:
there they would keep the units of their limits, their locks and their budgets for as long as nobody takes them.
"""

from __future__ import annotations

from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait

NAME = "worker"


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold every task of a lane that no worker can serve."""
    return Wait(NAME, "no worker that the leader knows to be awake can run it") if facts.unserved else PASS


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "start a worker that can run it, or change one that is awake; within its next heartbeats the task goes on"


GATE = TypeGate(
    NAME,
    "a worker that is awake can run it, or none is awake",
    frozenset({Wake.STEP}),
    _change,
    judge,
    holds_ready=True,
)
