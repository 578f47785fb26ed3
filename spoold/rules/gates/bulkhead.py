"""The slots of a class: its reserved share of those that are alive, and what it may borrow.

Law: without classes in the settings it holds nothing.
"""

from __future__ import annotations

from spoold.protocol.amount import amount, figure
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait
from spoold.rules.scheduling.resources import CLASS


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while its class has no slot for it."""
    name, shares = _class_of(facts), facts.stock.shares
    if name is None or shares is None:
        return PASS
    used = facts.stock.slots_used()
    due = facts.stock.due.get(f"{CLASS}{name}", 0)
    if not due and shares.lets(name, used):
        return PASS
    mine = f"class {name} uses {amount(used.get(name, 0), 'slot')} and has {figure(shares.of(name))} of its own"
    if (reserved := sum(shares.slots.values())) > shares.total:
        mine = f"{mine}; all classes together reserve {figure(reserved)}, more than there are"
    back = f"; tasks that lent theirs while they waited want one back first: {due}" if due else ""
    return Wait(
        "class",
        f"{mine}; {sum(used.values())} of {shares.total} are in use{facts.stock.told(f'{CLASS}{name}')}{back}",
    )


def _class_of(facts: TypeFacts) -> str | None:
    return next((name.removeprefix(CLASS) for name in facts.uses if name.startswith(CLASS)), None)


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name, shares = _class_of(held.type), held.type.stock.shares
    more = name is not None and shares is not None and name not in shares.borrow
    own = f", or raise slots of [classes.{name}] or let it borrow" if more else ""
    if shares is not None and sum(shares.slots.values()) > shares.total:
        most = max(shares.slots, key=lambda each: shares.slots[each])
        own = f", or reserve less: slots of [classes.{most}]"
    return f"it goes on when a task ends; or start another worker{own}"


GATE = TypeGate(
    "class",
    "its class has a slot of its own left, or may borrow one",
    frozenset({Wake.STEP}),
    _change,
    judge,
)
