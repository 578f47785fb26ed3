"""The tasks with which a dependency failure began: the task to fix first is seldom the nearest.

Law: looks and never touches, as `explain` does; the trail ends at a task that cannot be read.
"""

from __future__ import annotations

import contextlib

from spoold.client.waiting import read_result
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.store.locate import Located, locate_many
from spoold.store.store import Store

TASKS_READ = 64


def origins(store: Store, located: Located) -> dict[str, str]:
    """Return the failed tasks that made this one fail and failed by themselves: id → code, '' where it is lost.

    Reads at most TASKS_READ tasks, the nearest first. Errors: OSError from listing.
    """
    found: dict[str, str] = {}
    trail, seen = [located], {key(located.id)}
    for _ in range(TASKS_READ):
        if not trail:
            break
        here = trail.pop(0)
        code = _code(store, here)
        behind = _failed_parents(store, here) if code == Code.DEPENDENCY_FAILED else []
        if not behind and here is not located:
            found[here.id] = code
        trail += [parent for parent in behind if key(parent.id) not in seen]
        seen |= {key(parent.id) for parent in behind}
    return found


def _code(store: Store, located: Located) -> str:
    with contextlib.suppress(BadFile, NotFound):
        error = read_result(store, located).error
        return str(error.code) if error is not None else ""
    return ""


def _failed_parents(store: Store, located: Located) -> list[Located]:
    with contextlib.suppress(BadFile, FileNotFoundError):
        needs = codec.load_task(store.fs.read(located.path), located.path).dependencies
        found = locate_many(store, needs)
        return [found[need] for need in needs if need in found and found[need].state is State.FAILED]
    return []
