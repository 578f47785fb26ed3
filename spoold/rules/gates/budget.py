"""What attempts may cost together: USD, tokens or seconds, as `[budgets.NAME]` says.

A task reserves its own `budget`, else what is usual for its type, before each attempt; its record settles that.

Law: what is spent or reserved never exceeds a limit, but for what an attempt costs beyond its reservation. Until a
new leader has read what ended before it, nothing that draws on a budget starts.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions, Facts, Held, Known
from spoold.rules.gates.gate import TaskGate, Tasks, Wake
from spoold.rules.gates.verdicts import PASS, Refuse, Verdict, Wait
from spoold.rules.scheduling.budgets import Book, Purse, Short
from spoold.rules.scheduling.spending import NOTHING, UNIT, Asked, asked_by, drawing

NAME = "budget"
_UNITS = {"cost_usd": "USD", "tokens": "tokens", "task_s": "s"}
_OPTIONS = {"cost_usd": "--cost-usd", "tokens": "--tokens", "task_s": "--task-s"}


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold or refuse a task for whose next attempt a budget has too little left."""
    purse, asked = _purse(facts), _asked(conditions)
    if purse is None or purse.group(facts.kind, asked) is None:
        return PASS
    if purse.closed:
        return Wait(NAME, purse.closed)
    found = [_verdict(purse, short) for short in purse.short(facts.kind, asked)]
    refused = next((verdict for verdict in found if isinstance(verdict, Refuse)), None)
    return refused or next(iter(found), PASS)


def _verdict(purse: Purse, short: Short) -> Wait | Refuse:
    budget, reason = purse.settings.budgets[short.account[0]], words(short)
    if budget.over == "fail" and short.for_good:
        return Refuse(NAME, Code.BUDGET_EXCEEDED, reason)
    return Wait(NAME, reason, purse.tomorrow() if budget.per == "day" and short.need is not None else None)


def words(short: Short) -> str:
    """The sentence on a budget with too little left."""
    (name, period), unit = short.account, _UNITS[short.name]
    what = f"budget {name}" if period == "total" else f"budget {name} ({period.replace(':', ' ', 1)})"
    raised = f"`spool budget raise {name} {_OPTIONS[short.name]} …`"
    if short.need is None:
        return f"{what}: nobody knows how many {unit} it may come to; give it a budget with {short.name}"
    needs = f", and it reserves {figure(short.need, short.name)}" if short.need else ""
    used, limit = figure(short.used, short.name), figure(short.limit, short.name)
    return f"{what}: {used} of {limit} {unit} are spent or reserved{needs}; {raised} adds to it"


def figure(value: int, name: str) -> str:
    """An amount in millionths for people: USD with two decimals or more, others with as few as they need."""
    whole, part = divmod(value, UNIT)
    decimals = f"{part:06}".rstrip("0")
    if name == "cost_usd":
        decimals = decimals.ljust(2, "0")
    return f"{whole:,}.{decimals}" if decimals else f"{whole:,}"


def _purse(facts: Facts) -> Purse | None:
    found: Purse | None = facts.more.get(NAME)
    return found


def _asked(conditions: Conditions) -> Asked:
    asked = conditions.asks(NAME)
    return asked if isinstance(asked, Asked) else NOTHING


def _group(conditions: Conditions, facts: Facts) -> Hashable | None:
    purse = _purse(facts)
    return None if purse is None else purse.group(facts.kind, _asked(conditions), child=conditions.child)


def _asks(task: Task) -> Hashable | None:
    return asked_by(task)


def _book(conditions: Conditions, facts: Facts) -> None:
    """A task that goes to ready/ has its reservation from then on."""
    purse = _purse(facts)
    if purse is not None:
        purse.reserve(facts.kind, _asked(conditions))


def _unbook(conditions: Conditions, facts: Facts) -> None:
    """A task that makes way has no reservation any more."""
    purse = _purse(facts)
    if purse is not None:
        purse.release(facts.kind, _asked(conditions))


def _holds(conditions: Conditions, facts: Facts, other: Conditions, about: Facts) -> bool:
    """Whether both draw on one account, and what is reserved there is what the first one lacks."""
    purse = _purse(facts)
    if purse is None or any(short.for_good for short in purse.short(facts.kind, _asked(conditions))):
        return False
    mine, theirs = purse.accounts(facts.kind, _asked(conditions)), purse.accounts(about.kind, _asked(other))
    return not set(mine).isdisjoint(theirs)


def _kinds(purse: Any) -> frozenset[str]:
    return frozenset() if purse is None else drawing(purse.settings)


def _gather(known: Known) -> Purse | None:
    """The budgets of this moment; None where the settings name none."""
    if not known.settings.budgets:
        return None
    return Purse(known.settings, known.more.get(NAME) or Book(), known.now)


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    raised = (
        "`spool budget raise`, or a smaller `budget` of the task" if wait.until is None else "`spool budget raise`"
    )
    return raised if wait.until is None else f"time; or {raised}"


GATE = TaskGate(
    NAME,
    "each budget that the task draws on has enough left for its next attempt",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
    tasks=Tasks.DRAWING,
    gather=_gather,
    asks=_asks,
    group=_group,
    kinds=_kinds,
    book=_book,
    unbook=_unbook,
    holds=_holds,
)
