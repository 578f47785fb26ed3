"""The task's own last moment, by the pool's clock.

Law: from its deadline on a task is refused, also in ready/. `ends.past` says when that is, here and for the leader.
"""

from __future__ import annotations

from spoold.protocol.result import Code
from spoold.rules.attempts.ends import past
from spoold.rules.gates.facts import Conditions, Facts
from spoold.rules.gates.gate import TaskGate, Wake
from spoold.rules.gates.verdicts import PASS, Refuse, Verdict


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """From its moment on the task never runs."""
    if conditions.deadline is not None and past(conditions.deadline, facts.now):
        return Refuse("deadline", Code.DEADLINE, "its deadline is over")
    return PASS


def _moment(conditions: Conditions) -> float | None:
    return conditions.deadline


GATE = TaskGate(
    "deadline",
    "the deadline is not over",
    frozenset({Wake.TIME}),
    None,
    judge,
    moment=_moment,
    holds_ready=True,
)
