"""Whether a task can be cancelled or tried again: what no leader could do is refused where it is asked for."""

from __future__ import annotations

from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.store.locate import Located


def refuses_cancel(located: Located) -> SpoolError | None:
    """Why this task cannot be cancelled; None where it can, or where it has ended, which needs nothing more."""
    if located.state is State.REJECTED:
        return SpoolError(f"rejected/{located.drop} was rejected: there is nothing to cancel.")
    if located.state is State.PENDING and located.id == located.drop:
        return NotFound(f"pending/{located.drop} has no id yet; delete the file, or cancel it once it has one.")
    return None


def refuses_retry(located: Located) -> SpoolError | None:
    """Why this task cannot be tried again; None where it can."""
    if located.state is State.REJECTED:
        return SpoolError(f"{located.id} was rejected: mend the file and submit it again.")
    if located.state is not State.FAILED:
        return SpoolError(f"task {located.id} is {located.state}; only a failed task can be retried.")
    return None
