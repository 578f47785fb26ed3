"""A task that waits for itself, however long the way round.

Law: every member of a cycle is refused, and not only the task that closed it. The reason names one whole cycle.
"""

from __future__ import annotations

from spoold.protocol.result import Code
from spoold.rules.gates.facts import Conditions, Facts
from spoold.rules.gates.gate import TaskGate
from spoold.rules.gates.verdicts import PASS, Refuse, Verdict


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Every member of a cycle is refused, and the reason names one whole cycle."""
    if facts.ring:
        ring = " → ".join([*facts.ring, facts.ring[0]])
        return Refuse("cycle", Code.INVALID_TASK, f"dependency cycle: {ring}; take one dependency out of it")
    return PASS


# Nothing wakes it: a cycle is found when the task that closes it arrives, and all its members are asked then.
GATE = TaskGate("cycle", "the task is in no dependency cycle", frozenset(), None, judge)
