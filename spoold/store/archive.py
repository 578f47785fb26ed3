"""archive/: old tasks with their results and logs, in 256 directories by hash of id.

Law: the id alone says in which directory a task is. Its result and its logs come there before its file, so a task
that is found has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spoold.protocol import layout
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import EndedName, key, parse_archived
from spoold.store import mover
from spoold.store.absence import names_in
from spoold.store.mover import Moved
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
