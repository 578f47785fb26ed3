"""What a leader does about a cancel, by where the task stands, and how long a request may wait for its task.

Law: the node that holds a token ends it. So the leader fails tasks that no worker holds, and a worker reads control/
itself and stops the tasks that it runs. An ended task stays as it ended.
"""

from __future__ import annotations

from enum import StrEnum

from spoold.protocol.lifecycle import State

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
