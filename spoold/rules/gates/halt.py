"""A halt of the whole spool.

Law: a halt holds every task of every type, also in ready/, and no time ends it.
"""

from __future__ import annotations

from spoold.protocol.request import EVERYTHING, Verb
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold every task while a halt stands."""
    return Wait("halt", "the spool is halted; `spool resume` lets it go on") if facts.halted else PASS


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "`spool resume`"


def _detail(held: Held, wait: Wait) -> str:
    """Who asked for it, and why."""
    return held.asked.get((Verb.HALT, EVERYTHING), "")


GATE = TypeGate(
    "halt", "the spool is not halted", frozenset({Wake.STEP}), _change, judge, detail=_detail, holds_ready=True
)
