"""Limits that are closed: by an attempt that found a quota used up, or by a person.

Law: a closed limit holds every task that uses it, also in ready/. When the time of a quota has come, one task goes
first; the others follow when it has ended without the same report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from spoold.protocol.request import Verb
from spoold.rules.gates.closing import Closed
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait
from spoold.rules.scheduling.resources import QUOTA, Uses


def closed_limit(uses: Uses, closed: Mapping[str, Closed]) -> str | None:
    """The closed limit that such a task uses; of several the one that stays closed for longest."""
    names = [name.removeprefix(QUOTA) for name in uses if name.startswith(QUOTA)]
    return max((name for name in names if name in closed), key=lambda name: _end(closed[name]), default=None)


def judge_ready(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a limit that it uses is closed. One that is ready while others wait is itself the task that
    tries, unless no worker takes it.
    """
    name = closed_limit(facts.uses, facts.closed)
    if name is None:
        if facts.passed_over.startswith(QUOTA):
            return _tried(facts.passed_over, facts)
        return PASS
    there = facts.closed[name]
    if there.quota:
        return Wait("quota", f"quota of {name}", there.until)
    return Wait("quota", f"limit {name} is closed", there.until)


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a limit that it uses is closed, or while another task tries whether it is open again."""
    closed = judge_ready(kind, facts)
    if closed is not PASS:
        return closed
    name = facts.stock.short_of(facts.uses, (QUOTA,))
    return PASS if name is None else _tried(name, facts)


def _tried(name: str, facts: TypeFacts) -> Wait:
    tried = name.removeprefix(QUOTA)
    said = f"the quota of {tried} was used up, and few tasks at a time try it again"
    return Wait("quota", said, facts.opens.get(name))


def _end(closed: Closed) -> float:
    return math.inf if closed.until is None else closed.until


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = closed_limit(held.type.uses, held.type.closed)
    if name is None:
        return "the end of the task that tries it"
    open_now = f"`spool limits open {name}`"
    return open_now if wait.until is None else f"time; or {open_now}"


def _detail(held: Held, wait: Wait) -> str:
    """Who closed it, and why."""
    name = closed_limit(held.type.uses, held.type.closed)
    if name is None:
        return ""
    verb = Verb.QUOTA if held.type.closed[name].quota else Verb.CLOSE
    return held.asked.get((verb, name), "")


GATE = TypeGate(
    "quota",
    "no limit that it uses is closed",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
    detail=_detail,
    holds_ready=True,
    judge_ready=judge_ready,
)
