"""archive/: old tasks with their results and logs, in 256 directories by hash of id."""

from __future__ import annotations

from collections.abc import Iterator

from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_archived
from spoold.store.mover import Moved
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem

_TASKS = (State.COMPLETED.value, State.FAILED.value)


def list_archived(fs: FileSystem) -> Iterator[tuple[str, EndedName, str]]:
    """Every archived task file: its path, its name, what it ended as. Errors: OSError."""
    for name in sorted(fs.list(layout.ARCHIVE)):
        yield from _bucket(fs, layout.join(layout.ARCHIVE, name))


def find_archived(fs: FileSystem, task_id: str) -> str | None:
    """The path of an archived task file, or None. Errors: OSError."""
    wanted, bucket = key(task_id), layout.bucket(task_id)
    if bucket.rpartition("/")[2] not in fs.list(layout.ARCHIVE):
        return None
    return next((path for path, name, _ in _bucket(fs, bucket) if key(name.id) == wanted), None)


def _bucket(fs: FileSystem, directory: str) -> Iterator[tuple[str, EndedName, str]]:
    try:
        names = fs.list(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        parsed = parse_archived(name)
        if parsed is not None and parsed[1] in _TASKS:
            yield layout.join(directory, name), *parsed


def archive_task(store: Store, state: State, name: EndedName) -> Moved:
    """Move an ended task's file into the archive; its result and logs go first. Errors: OSError."""
    return store.move(layout.join(state, name.encode()), layout.join(bucket_of(store, name.id), name.archived(state)))


def bucket_of(store: Store, task_id: str) -> str:
    """The archive directory of an id, made if need be. Errors: OSError."""
    bucket = layout.bucket(task_id)
    make_directory(store.fs, bucket)
    return bucket
