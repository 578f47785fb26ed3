"""What a task is given of the tasks before it: the results of its dependencies, and how the tasks of a batch ended.

The batch of a task is in its file alone, so every ended task is read: completed/, failed/, then the archive. That may
take longer than a step, or a lease: it is done in pieces, and no longer than SEARCH_S in all.

Law: a task gets only committed results, found by the names of its ended parents. A result that is gone or too large
is left out and stops no task. A task may name thousands: they are brought one by one, over as many steps as it takes.
A list of outcomes that may be incomplete says so in its last line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import orjson

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import EndedName, ended_key_in, key, parse_archived, parse_ended
from spoold.protocol.task import Task
from spoold.store import existence
from spoold.store.existence import reading, regular
from spoold.store.lanes_and_archive import find_archived, list_archived
from spoold.system.clock import Clock
from spoold.system.errnos import concerns_one_file
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
            data = existence.read(fs, path, TOTAL_MAX + 1)
            if data is not None:
                write(f"deps/{parent}.json", data)
                return


# How the tasks of a batch ended, for a task that runs after it: one line for each, in one file.


# Seconds of reading in one piece, and in all; and lines in the file.
PIECE_S, SEARCH_S, LINES_MAX = 0.5, 30.0, 100_000
OUTCOMES_NAME = "outcomes.jsonl"


class Outcomes:
    """The search for the ended tasks of one batch."""

    def __init__(self, fs: FileSystem, clock: Clock, batch: str) -> None:
        self._clock = clock
        self._lines: list[bytes] = []
        self._more = 0
        self._cut = False
        self._left_s = SEARCH_S
        self._search = _search(fs, batch)

    def go_on(self) -> bool:
        """Read on for a piece; True when the search is over. Errors: OSError of the share."""
        begin = self._clock.monotonic()
        for line in self._search:
            if line is not None and len(self._lines) < LINES_MAX:
                self._lines.append(line)
            elif line is not None:
                self._more += 1
            spent_s = self._clock.monotonic() - begin
            if spent_s >= self._left_s:
                self._cut = True
                return True
            if spent_s >= PIECE_S:
                self._left_s -= spent_s
                return False
        return True

    def file(self) -> bytes:
        """The file: a line for each task; where some are missing, a last line that says so."""
        last = {"incomplete": True, "more": self._more} if self._cut or self._more else None
        return b"".join(line + b"\n" for line in (*self._lines, *([orjson.dumps(last)] if last else ())))


def _search(fs: FileSystem, batch: str) -> Iterator[bytes | None]:
    """Yield the line of each ended task of the batch, and None for each other that was read."""
    seen: set[str] = set()
    for path, name, state in _ended(fs):
        line = None
        if key(name.id) not in seen and _batch_of(fs, path, batch) == key(batch):
            seen.add(key(name.id))
            ended = shown_end(state, skipped=name.skipped)
            line = orjson.dumps({"id": name.id, "state": ended, "attempt": name.attempt, "result": name.encode()})
        yield line


def _ended(fs: FileSystem) -> Iterator[tuple[str, EndedName, State]]:
    """Yield the ended tasks as they move: one that is archived meanwhile is met twice rather than not at all."""
    for state in (State.COMPLETED, State.FAILED):
        for file in sorted(fs.list(state)):
            if (name := parse_ended(file)) is not None:
                yield layout.join(state, file), name, state
    for path, name, kind in list_archived(fs):
        yield path, name, State(kind)


def _batch_of(fs: FileSystem, path: str, batch: str) -> str:
    """The key of the batch that a task names; '' for none. Only a file that has the word is parsed."""
    try:
        with reading("file", path):
            with regular(path):
                data = existence.read(fs, path)
            if data is None or b'"batch"' not in data or batch.lower().encode() not in data.lower():
                return ""
            said = codec.load_object(data, path).get("batch")
    except BadFile:
        return ""
    except OSError as error:
        if not concerns_one_file(error):
            raise
        return ""
    return key(said) if isinstance(said, str) else ""
