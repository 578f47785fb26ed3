"""runner/mourning: kills the processes that a dead supervisor left.

Law: only processes that this one adopted from that supervisor are touched; other code waits for other children.
This room may read /proc and the environments of processes, kill, and remove the slot's control group.

Touches: processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from spoold.runner import tree
from spoold.runner.slot import Slot
from spoold.runner.sweep import sweep

_MARKS = {"SPOOL_ROOT", "SPOOL_WORKER_ID", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"}
_PATIENCE_S = 2.0


def end_orphans(slot: Slot, known: Iterable[int]) -> list[int]:
    """Kill them; return the pids that survived. known: supervisors that live, or that are handled later."""
    left: list[int] = []
    if tree.is_subreaper():
        others = list(known)

        def find() -> list[tree.Seen]:
            return tree.orphans(others)

        left = tree.end(find, lambda: _reap(find()), patience_s=_PATIENCE_S)
    else:
        # Its orphans went to init; those that kept their environment can still be recognised by it.
        for job in slot.jobs:
            if (env := {**job.env, **job.own}).keys() >= _MARKS:
                sweep({name: env[name] for name in _MARKS})
    slot.room.clear()
    return left


def _reap(found: list[tree.Seen]) -> bool:
    """Collect dead orphans by pid, since other code waits for other children."""
    for seen in found:
        if not seen.alive and seen.parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(seen.pid, os.WNOHANG)
    return False
