"""The units of each counted resource that may be in use at once: of a type, `max_concurrent`; of a limit, `max`.

Law: units in doubt count as used: while the doubt lasts, nothing new begins in their place. A task that waits for
units is not overtaken by a later one that wants them, too.
"""

from __future__ import annotations

from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a resource that it uses is at its limit; units in doubt count as used."""
    name = facts.stock.short_of(facts.uses)
    if name is None:
        return PASS
    there, used, doubt = facts.stock.capacity[name], facts.stock.used.get(name, 0), facts.stock.doubtful.get(name, 0)
    reason = f"{there.whose} runs at its limit: {used} of {there.setting} = {there.units}"
    if facts.uses[name] > 1:
        reason += f", and the task uses {facts.uses[name]}"
    reason += facts.stock.told(name)
    if due := facts.stock.due.get(name, 0):
        reason += f"; tasks that lent units while they waited want them back first: {due}"
    return Wait("limit", f"{reason}; tasks in doubt count as well: {doubt}" if doubt else reason)


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = held.type.stock.short_of(held.type.uses)
    there = None if name is None else held.type.stock.capacity[name]
    if name is None or there is None:
        return "time"
    if (kept := held.type.stock.kept.get(name)) is not None:
        return f"it goes on when task {kept.task} has had its turn; or {there.raised}"
    if held.type.uses[name] > there.units > 0:
        return f"it uses more than there is: {there.raised}"
    return f"it goes on when one of them ends; or {there.raised}"


GATE = TypeGate(
    "limit",
    "fewer tasks of the type than `max_concurrent` are ready or claimed, and each limit that it uses has units left",
    frozenset({Wake.STEP}),
    _change,
    judge,
)
