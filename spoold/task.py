"""For the program of a task: `from spoold import task`; `done = task.restore(0)`; `task.checkpoint(done)`.

Law: outside of a task nothing is saved, and nothing is found: so a program runs the same without a spool.

Touches: the environment.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["checkpoint", "restore"]


def checkpoint(value: Any) -> int:
    """Save how far this task has come: any JSON value up to 1 MiB. Return the step's number, 0 outside of a task.

    The next attempt finds it, also on another machine and after `kill -9`. Errors: SpoolError, Unavailable.
    """
    if not _within_a_task():
        return 0
    from spoold.client.context_and_steps import Steps
    from spoold.client.spool.connection import Connection

    with Connection(os.environ["SPOOL_ROOT"]) as spool:
        return Steps(spool).save(value)


def restore(default: Any = None) -> Any:
    """Return what this task, in this attempt or an earlier one, saved last; `default` if it has saved nothing.

    Errors: SpoolError, Unavailable.
    """
    if not _within_a_task():
        return default
    from spoold.client.context_and_steps import Steps
    from spoold.client.spool.connection import Connection

    with Connection(os.environ["SPOOL_ROOT"]) as spool:
        found = Steps(spool).last()
    return default if found is None else found[1]


def _within_a_task() -> bool:
    return all(os.environ.get(name) for name in ("SPOOL_ROOT", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"))
