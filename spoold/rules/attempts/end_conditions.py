"""When an attempt or a task has to end: its timeout, its deadline, and what stops it before, such as a cancel.

Law: a moment is past from its first instant on. A task whose deadline is past ends where it stands: the gate of
deadlines refuses what waits, the leader fails what is ready, and the worker stops what it runs. The node that
stops an attempt says why, and the first reason stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code, Status
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import Outcome

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
    return attempt_outcome.past_deadline("its deadline passed before a worker took it")


def why_stop(cancelled: str | None, recalled: Outcome | None, left_s: float) -> Outcome | None:
    """Why a worker stops an attempt, None if it goes on.

    cancelled: who cancelled it and why, if anyone did; recalled: why the worker gives back all that it runs; left_s:
    how long it is until the deadline. That counts here, too: the timeout may have stood still, or begun before the
    pool's time was known.
    """
    if cancelled is not None:
        return attempt_outcome.cancelled(cancelled)
    if recalled is not None:
        return recalled
    return attempt_outcome.past_deadline("its deadline passed while it ran") if left_s <= 0 else None


def timed_out(message: str, *, by_deadline: bool) -> Outcome:
    """How an attempt ended that took longer than its limit. message: what its supervisor says of it."""
    if by_deadline:
        return attempt_outcome.past_deadline(f"its deadline passed while it ran: {message}")
    return attempt_outcome.failure(Code.TIMEOUT, message)


def status_of(code: Code) -> Status:
    """How a task ended that a gate refused with this code: no attempt of it ran."""
    return _STATUS.get(code, Status.FAILURE)


# What a leader does about a cancel, by where the task stands, and how long a request may wait for its task.
# Law: the node that holds a token ends it. So the leader fails tasks that no worker holds, and a worker reads
# control/ itself and stops the tasks that it runs. An ended task stays as it ended.


# A cancel may overtake the drop that it is meant for; after this long (s) there is no such task. A retry of a task
# that failed with its parent waits this long (s) for a retry of the parent; without one the task fails once more.
UNKNOWN_FOR_S = 10.0


class Cancel(StrEnum):
    """FAIL: end the task; STANDING: leave the request to a later step or to a worker; OVER: remove the request."""

    FAIL = "fail"
    STANDING = "standing"
    OVER = "over"


_BY_STATE = {
    State.PENDING: Cancel.STANDING,  # a drop in the leader's door is a task in a moment
    State.WAITING: Cancel.FAIL,
    State.READY: Cancel.FAIL,
    State.RETURNED: Cancel.FAIL,
    State.CLAIMED: Cancel.STANDING,
    State.COMPLETED: Cancel.OVER,
    State.FAILED: Cancel.OVER,
    State.SKIPPED: Cancel.OVER,
    State.REJECTED: Cancel.OVER,
    State.ARCHIVE: Cancel.OVER,
}


def waited_enough(waited_s: float) -> bool:
    """Whether a cancel or a retry waits no longer, after so many seconds in which nothing could be done."""
    return waited_s >= UNKNOWN_FOR_S


def decide(state: State | None, *, archived: bool) -> Cancel:
    """What becomes of a cancel. state: where its task stands, None if nowhere; archived: whether it is in archive/.

    A task that is nowhere may not have come yet: a cancel can overtake the drop that it is meant for.
    """
    if state is not None:
        return _BY_STATE[state]
    return Cancel.OVER if archived else Cancel.STANDING
