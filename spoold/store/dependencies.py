"""The results of a task's dependencies, for the task to read.

Law: a task gets only committed results, found by the names of its ended parents. A result that is gone or too large
is left out and stops no task. A task may name thousands: they are brought one by one, over as many steps as it takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import ended_key_in, key, parse_archived, parse_ended
from spoold.protocol.task import Task
from spoold.store import absence
from spoold.store.archive import find_archived
from spoold.store.regular import reading
from spoold.system.filesystem import FileSystem

# Bytes of all results together, which are copied to the worker's own disk.
TOTAL_MAX = 256 << 20


def write_dependencies(fs: FileSystem, task: Task, write: Callable[[str, bytes], None]) -> Iterator[None]:
    """Write `deps/ID.json`, the committed result, for every dependency; yield after each. Skips a result that is
    gone, and one that would exceed TOTAL_MAX in all. Errors: OSError.
    """
    write = _bounded(write)
    wanted = {key(parent): parent for parent in (*task.dependencies, *task.after_any, *task.after_failed)}
    for state in (State.COMPLETED, State.FAILED):
        if not wanted:
            return
        # Of ten thousand names a few are wanted: parse only those.
        named = sorted(name for name in fs.list(state) if ended_key_in(name) in wanted)
        for ended in map(parse_ended, named):
            if ended is not None and key(ended.id) in wanted:
                parent = wanted.pop(key(ended.id))
                # Retention moves a result before its task: a result that is gone from here is in the archive.
                archived = layout.join(layout.bucket(ended.id), ended.archived("result"))
                _copy(fs, parent, write, layout.join(layout.RESULTS, ended.encode()), archived)
                yield
    for parent in wanted.values():
        path = find_archived(fs, parent)
        found = parse_archived(path.rpartition("/")[2]) if path else None
        if found is not None:
            _copy(fs, parent, write, layout.join(layout.bucket(parent), found[0].archived("result")))
        yield


def _bounded(write: Callable[[str, bytes], None]) -> Callable[[str, bytes], None]:
    """The same writer, limited to TOTAL_MAX bytes in all."""
    left = TOTAL_MAX

    def written(name: str, data: bytes) -> None:
        nonlocal left
        if len(data) <= left:
            left -= len(data)
            write(name, data)

    return written


def _copy(fs: FileSystem, parent: str, write: Callable[[str, bytes], None], *paths: str) -> None:
    """Write the first of these files that exists; a record that a person removed must not stop its children."""
    for path in paths:
        with contextlib.suppress(BadFile), reading("record", path, parent):
            data = absence.read(fs, path, TOTAL_MAX + 1)
            if data is not None:
                write(f"deps/{parent}.json", data)
                return
