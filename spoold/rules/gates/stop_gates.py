"""Gates that people close: a halt of the whole spool, a pause of a type, a hold of one task.

Only `registry` asks these, as it asks the gates of every subject.

Law: a halt holds every task of every type, also in ready/, and no time ends it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from spoold.protocol.request import EVERYTHING, Verb
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions, Facts, Held, TypeFacts
from spoold.rules.gates.gate import PASS, TaskGate, Tasks, TypeGate, Verdict, Wait, Wake
from spoold.rules.gates.standing_requests import hold_of, is_released


def judge_halt(kind: str, facts: TypeFacts) -> Verdict:
    """Hold every task while a halt stands."""
    return Wait("halt", "the spool is halted; `spool resume` lets it go on") if facts.halted else PASS


def _change_of_halt(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "`spool resume`"


def _detail_of_halt(held: Held, wait: Wait) -> str:
    """Who asked for it, and why."""
    return held.asked.get((Verb.HALT, EVERYTHING), "")


HALT = TypeGate(
    "halt",
    "the spool is not halted",
    frozenset({Wake.STEP}),
    _change_of_halt,
    judge_halt,
    detail=_detail_of_halt,
    holds_ready=True,
)


# A pause of a type, or of all types.
# Law: of several pauses the longest counts, and one without an end is the longest. It holds tasks in ready/, too.


def holder(kind: str, paused: Mapping[str, float | None]) -> str | None:
    """The target that pauses the type: the type, +all, or None. If both do, the longer pause."""
    standing = [target for target in (EVERYTHING, kind) if target in paused]
    return max(standing, key=lambda target: _end(paused[target]), default=None)


def judge_pause(kind: str, facts: TypeFacts) -> Verdict:
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


def _change_of_pause(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    resume = _resume(held.kind, held.type.paused)
    return resume if wait.until is None else f"time; or {resume}"


def _detail_of_pause(held: Held, wait: Wait) -> str:
    """Who asked for the pause that lasts longest, and why."""
    return held.asked.get((Verb.PAUSE, holder(held.kind, held.type.paused) or EVERYTHING), "")


PAUSE = TypeGate(
    "pause",
    "the type is not paused",
    frozenset({Wake.STEP, Wake.TIME}),
    _change_of_pause,
    judge_pause,
    detail=_detail_of_pause,
    holds_ready=True,
)


# A hold of one task: it was dropped with one, or a person asked for it.
# Law: no time ends a hold, and only a request about this very task makes the leader ask again: any number of held
# tasks costs nothing. It takes tasks back from ready/, and touches none that runs.


def judge_hold(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task while a hold stands, or while nothing has released one that it was dropped with."""
    asked = hold_of(facts.requested)
    if asked is not None:
        return Wait("hold", f"it is held {asked.told}")
    why = conditions.asks("hold")
    if why is None or is_released(facts.requested):
        return PASS
    return Wait("hold", f"it was submitted on hold: {why}")


def _asks(task: Task) -> Hashable | None:
    return task.hold


def _change_of_hold(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return f"`spool release {held.id}`"


HOLD = TaskGate(
    "hold",
    "no hold of the task stands, and one that it was dropped with was released",
    frozenset({Wake.REQUEST}),
    _change_of_hold,
    judge_hold,
    tasks=Tasks.NAMED,
    asks=_asks,
    holds_ready=True,
)
