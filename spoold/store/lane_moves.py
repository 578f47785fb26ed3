"""Lane directories: made when first needed, removed by the leader when idle.

Law: a lane is listed and never guessed. The leader may have removed it a moment ago, so a move into a lane makes a
missing one and is tried again.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import TaskName, parse_task
from spoold.store.absence import names_in
from spoold.store.mover import Fate, Moved
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem


def list_lanes(fs: FileSystem, directory: str, others: list[str] | None = None) -> dict[str, Lane]:
    """The lanes under waiting/ or ready/: name → demand. others: collects the names of none. Errors: OSError."""
    parsed = {name: parse_lane(name) for name in fs.list(directory)}
    if others is not None:
        others.extend(name for name, lane in parsed.items() if lane is None)
    return {name: lane for name, lane in sorted(parsed.items()) if lane is not None}


def list_tasks(fs: FileSystem, directory: str, blocked: set[str] | None = None) -> dict[str, TaskName]:
    """The task files of one directory: name → its fields; foreign files are passed over. Errors: OSError.

    blocked: as for `names_in`.
    """
    parsed = {name: parse_task(name) for name in names_in(fs, directory, blocked)}
    return {name: task for name, task in parsed.items() if task is not None}


def move_into_lane(store: Store, event: str, src: str, directory: str, lane: str, name: str) -> Moved:
    """The leader moves a token into a lane of waiting/ or ready/; it makes a missing lane. Errors: OSError."""
    dst = layout.join(directory, lane, name)
    moved = store.move(Mover.LEADER, event, src, dst)
    if moved.fate is Fate.NO_DIRECTORY:
        make_directory(store.fs, layout.join(directory, lane))
        moved = store.move(Mover.LEADER, event, src, dst)
    return moved
