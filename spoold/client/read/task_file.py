"""The file of a task that has not ended, and what is wrong with it.

It stands apart because it imports the model of a task, which `task_info` loads only when a task has not ended.

Law: looks and never touches. The file is read as the worker reads it that claims the task: what is said of it here is
what will end the task there.
"""

from __future__ import annotations

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.lifecycle import State
from spoold.protocol.task import Task
from spoold.store.existence import readable
from spoold.store.store import Store
from spoold.store.task_location import Located

# The states in which a task file is one of spoold's own, which people do not write.
_OURS = frozenset({State.WAITING, State.READY, State.CLAIMED})


def read_task(store: Store, path: str) -> Task:
    """Return the task in a file. Errors: Unreadable; BadFile, also where its demand fits no lane; OSError."""
    with readable(path):
        task = codec.load_task(store.fs.read(path), path)
    try:
        task.lane.encode()
    except BadName as error:
        raise BadFile(path, "", f"fits no lane: {error}.", "submit it again with another demand.") from error
    return task


def fault_in(store: Store, located: Located) -> BadFile | None:
    """Return what is wrong with the file of a task that has not ended; None for nothing, also if it has moved on.

    Errors: OSError.
    """
    if located.state not in _OURS:
        return None
    try:
        read_task(store, located.path)
    except BadFile as error:
        return error
    except FileNotFoundError:
        return None
    return None
