"""The directories inside a state: the lanes of waiting/ and ready/, and the 256 directories of archive/ by hash of
id.

Law: a lane is listed and never guessed. The leader may have removed it a moment ago, so a move into a lane makes a
missing one and is tried again. In the archive the id alone says in which directory a task is. Its result and its logs
come there before its file, so a task that is found has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spoold.protocol import layout
from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import EndedName, TaskName, key, parse_archived, parse_task
from spoold.store import mover
from spoold.store.existence import names_in
from spoold.store.mover import Fate, Moved
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem

_TASK_ENDINGS = (f".{State.COMPLETED}.json", f".{State.FAILED}.json")


def list_archived(
    fs: FileSystem, ids: Iterable[str] | None = None, blocked: set[str] | None = None
) -> Iterator[tuple[str, EndedName, str]]:
    """Every archived task file: its path, its name, its last state. Errors: OSError.

    ids: only tasks with these ids; each directory is listed once. A directory that this user may not list is passed
    over. blocked: collects such directories.
    """
    blocked = set() if blocked is None else blocked
    wanted = None if ids is None else {key(task_id) for task_id in ids}
    buckets = None if wanted is None else {layout.bucket(task_key) for task_key in wanted}
    if buckets is not None and not buckets:
        return
    for name in sorted(fs.list(layout.ARCHIVE)):
        bucket = layout.join(layout.ARCHIVE, name)
        if buckets is None or bucket in buckets:
            for found in _bucket(fs, bucket, blocked):
                if wanted is None or key(found[1].id) in wanted:
                    yield found


def find_archived(fs: FileSystem, task_id: str, blocked: set[str] | None = None) -> str | None:
    """The path of an archived task file, or None. Errors: OSError. blocked: as for `list_archived`."""
    return next((path for path, _, _ in list_archived(fs, [task_id], blocked)), None)


def _bucket(fs: FileSystem, directory: str, blocked: set[str]) -> Iterator[tuple[str, EndedName, str]]:
    for name in sorted(name for name in names_in(fs, directory, blocked) if name.endswith(_TASK_ENDINGS)):
        parsed = parse_archived(name)
        if parsed is not None:
            yield layout.join(directory, name), *parsed


def archive_task(store: Store, state: State, file: str, name: EndedName) -> Moved:
    """Move the task file of an ended task into the archive; its result and logs go first."""
    return store.move(
        Mover.LEADER, "ARCHIVED", layout.join(state, file), layout.join(layout.bucket(name.id), name.archived(state))
    )


def archive_record(store: Store, src: str, name: EndedName, file: str) -> Moved:
    """Move a result or a log into the archive, under the name `file`."""
    return mover.move(store.fs, src, layout.join(layout.bucket(name.id), file))


def make_buckets(fs: FileSystem, ids: Iterable[str]) -> None:
    """Make the archive directories of these ids that are missing. Errors: OSError."""
    wanted = {layout.bucket(task_id) for task_id in ids}
    for bucket in sorted(wanted - {layout.join(layout.ARCHIVE, name) for name in fs.list(layout.ARCHIVE)}):
        make_directory(fs, bucket)


# Lane directories: made when first needed, removed by the leader when idle.


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
