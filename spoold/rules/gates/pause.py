"""A pause of a type, or of all types.

Law: of several pauses the longest counts, and one without an end is the longest. It holds tasks in ready/, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from spoold.protocol.request import EVERYTHING, Verb
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import TypeGate, Wake
from spoold.rules.gates.verdicts import PASS, Verdict, Wait


def holder(kind: str, paused: Mapping[str, float | None]) -> str | None:
    """The target that pauses the type: the type, +all, or None. If both do, the longer pause."""
    standing = [target for target in (EVERYTHING, kind) if target in paused]
    return max(standing, key=lambda target: _end(paused[target]), default=None)


def judge(kind: str, facts: TypeFacts) -> Verdict:
    """Hold every task of the type while a pause stands."""
    target = holder(kind, facts.paused)
    if target is None:
        return PASS
    what, until = "the whole spool" if target == EVERYTHING else f"type {kind}", facts.paused[target]
    if until is not None:
        return Wait("pause", f"{what} is paused", until)
    return Wait("pause", f"{what} is paused; {_resume(kind, facts.paused)} lets it go on")


def _end(until: float | None) -> float:
    return math.inf if until is None else until


def _resume(kind: str, paused: Mapping[str, float | None]) -> str:
    """The command that lifts every pause of the type."""
    return "`spool resume`" if EVERYTHING in paused else f"`spool resume {kind}`"


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    resume = _resume(held.kind, held.type.paused)
    return resume if wait.until is None else f"time; or {resume}"


def _detail(held: Held, wait: Wait) -> str:
    """Who asked for the pause that lasts longest, and why."""
    return held.asked.get((Verb.PAUSE, holder(held.kind, held.type.paused) or EVERYTHING), "")


GATE = TypeGate(
    "pause",
    "the type is not paused",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
    detail=_detail,
    holds_ready=True,
)
