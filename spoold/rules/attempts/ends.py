"""When an attempt or a task has to end: its timeout, its deadline, and what stops it before.

Law: a moment is past from its first instant on. A task whose deadline is past ends where it stands: the gate of
deadlines refuses what waits, the leader fails what is ready, and the worker stops what it runs. The node that
stops an attempt says why, and the first reason stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code, Status
from spoold.rules.attempts import outcome
from spoold.rules.attempts.outcome import Outcome

# A job that begins at its deadline has so long (s): a limit of nothing would be no limit.
LEAST_S = 0.001
_STATUS = {Code.DEADLINE: Status.TIMEOUT, Code.SKIPPED: Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class Limit:
    """How long (s) an attempt may take, None for ever; by_deadline: its deadline comes before its timeout."""

    timeout_s: float | None
    by_deadline: bool


def limit(timeout_s: float | None, left_s: float) -> Limit:
    """The limit of an attempt. timeout_s: its timeout, if any; left_s: how long it is until its deadline."""
    left_s = max(LEAST_S, left_s)
    if left_s < (math.inf if timeout_s is None else timeout_s):
        return Limit(left_s, by_deadline=True)
    return Limit(timeout_s, by_deadline=False)


def past(moment: float, now: float) -> bool:
    """Whether a moment is past. Both in seconds since 1970, by the same clock."""
    return moment <= now


def overdue(deadlines: Mapping[str, float], now: float) -> list[str]:
    """The keys of the tasks whose deadline is past. deadlines, now: s since 1970."""
    return [task_key for task_key, moment in deadlines.items() if past(moment, now)]


def too_late(state: State) -> Outcome | None:
    """What becomes of a task whose deadline is past, if it stands there: only a ready one is the leader's to fail."""
    if state is not State.READY:
        return None
    return outcome.past_deadline("its deadline passed before a worker took it")


def why_stop(cancelled: str | None, recalled: Outcome | None, left_s: float) -> Outcome | None:
    """Why a worker stops an attempt, None if it goes on.

    cancelled: who cancelled it and why, if anyone did; recalled: why the worker gives back all that it runs; left_s:
    how long it is until the deadline. That counts here, too: the timeout may have stood still, or begun before the
    pool's time was known.
    """
    if cancelled is not None:
        return outcome.cancelled(cancelled)
    if recalled is not None:
        return recalled
    return outcome.past_deadline("its deadline passed while it ran") if left_s <= 0 else None


def timed_out(message: str, *, by_deadline: bool) -> Outcome:
    """How an attempt ended that took longer than its limit. message: what its supervisor says of it."""
    if by_deadline:
        return outcome.past_deadline(f"its deadline passed while it ran: {message}")
    return outcome.failure(Code.TIMEOUT, message)


def status_of(code: Code) -> Status:
    """How a task ended that a gate refused with this code: no attempt of it ran."""
    return _STATUS.get(code, Status.FAILURE)
