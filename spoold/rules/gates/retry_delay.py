"""The backoff between two attempts.

Law: the backoff is a length, counted by the leader on a clock that cannot be set. The moment in the answer only says
when to ask again.
"""

from __future__ import annotations

from spoold.rules.gates.facts import Conditions, Facts, Held
from spoold.rules.gates.gate import TaskGate, Tasks, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until its backoff is over."""
    if facts.rest_s > 0:
        return Wait("retry_delay", "it rests before its next attempt", facts.now + facts.rest_s)
    return PASS


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "time; `retry.backoff_s` of the task or [retry] in spool.toml says how long"


def _detail(held: Held, wait: Wait) -> str:
    """How the last attempt ended."""
    return held.before


GATE = TaskGate(
    "retry_delay",
    "the backoff between attempts is over",
    frozenset({Wake.TIME}),
    _change,
    judge,
    tasks=Tasks.RESTING,
    detail=_detail,
)
