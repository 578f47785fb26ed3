"""How many tasks of a type may be ready or claimed at once."""

from __future__ import annotations

from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """What may be of the type, and is in doubt, takes its place."""
    if facts.limit is None or facts.active + facts.doubtful < facts.limit:
        return PASS
    reason = f"type {kind} runs at its limit: {facts.active} of [types.{kind}] max_concurrent = {facts.limit}"
    doubtful = f"; tasks in doubt count as well: {facts.doubtful}" if facts.doubtful else ""
    return Wait("limit", reason + doubtful)


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return f"it goes on when one of them ends; or raise [types.{held.kind}] max_concurrent in spool.toml"


GATE = TypeGate(
    "limit",
    "fewer tasks of the type than `max_concurrent` are ready or claimed",
    frozenset({Wake.STEP}),
    _change,
    judge,
)
