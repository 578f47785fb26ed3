"""The task's own first moment, by the pool's clock.

Law: it makes a task wait and never refuses it. A task that is in ready/ stays there, even if the clock goes back.
"""

from __future__ import annotations

from spoold.rules.gates.facts import Conditions, Facts, Held
from spoold.rules.gates.gate import TaskGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until its moment."""
    if conditions.not_before is not None and facts.now < conditions.not_before:
        return Wait("not_before", "its not_before has not come yet", conditions.not_before)
    return PASS


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "time; or cancel it and submit it again without not_before"


GATE = TaskGate("not_before", "`not_before` has come", frozenset({Wake.TIME}), _change, judge)
