"""A pause of a type, or of all types."""

from __future__ import annotations

from spoold.protocol.request import EVERYTHING, Verb
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Nothing of the type starts while it stands."""
    if EVERYTHING in facts.paused:
        return Wait("pause", "the whole spool is paused; `spool resume` lets it go on")
    if kind in facts.paused:
        return Wait("pause", f"type {kind} is paused; `spool resume {kind}` lets it go on")
    return PASS


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    alone = held.kind in held.type.paused and EVERYTHING not in held.type.paused
    return f"`spool resume{f' {held.kind}' if alone else ''}`"


def _detail(held: Held, wait: Wait) -> str:
    """Who asked for it, and why."""
    target = EVERYTHING if EVERYTHING in held.type.paused else held.kind
    return held.asked.get((Verb.PAUSE, target), "")


GATE = TypeGate(
    "pause", "the type is not paused", frozenset({Wake.STEP}), _change, judge, detail=_detail, holds_ready=True
)
