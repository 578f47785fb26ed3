"""The starts of tasks that use a limit, within any window of time: `rate` of a limit.

Law: a task in ready/ may start at any moment, so it counts as a start of now. A new leader counts at least the starts
that the leader before it knew.
"""

from __future__ import annotations

from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait
from spoold.rules.scheduling.resources import RATE


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while the window has no room for another start."""
    name = facts.stock.short_of(facts.uses, (RATE,))
    if name is None:
        return PASS
    there, used = facts.stock.capacity[name], facts.stock.used.get(name, 0) + facts.stock.doubtful.get(name, 0)
    reason = f"{there.whose} is at its rate: {used} of {there.setting} = {there.units} have started or may now"
    return Wait("rate", reason + facts.stock.told(name), facts.opens.get(name))


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = held.type.stock.short_of(held.type.uses, (RATE,))
    return "time" if name is None else f"time; or {held.type.stock.capacity[name].raised}"


GATE = TypeGate(
    "rate",
    "each limit that it uses has had fewer starts than its `rate` allows",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
)
