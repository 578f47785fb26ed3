"""The stdout and stderr of attempts, read once or followed.

Law: a log is found by listing, and opened anew each time, since only that shows the writes of another machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spoold.client.pace import Pace
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.names import EndedName, key, parse_log
from spoold.store import locate
from spoold.store.absence import names_shown
from spoold.store.store import Store

TAIL_BYTES = 4000
MOST_BYTES = 1 << 30  # of one log, at once


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one attempt's log."""

    attempt: int
    worker: str
    data: bytes
    task: str = ""


Log = tuple[EndedName, str]


def list_logs(store: Store, ids: Collection[str], archived: Collection[str] | None = None) -> list[Log]:
    """Return the logs of these tasks, by task, oldest attempt first: name and path. Errors: OSError.

    archived: the tasks whose logs are looked for in the archive too; None: all.
    """
    keys = {key(task_id) for task_id in ids}
    found = []
    for directory in (
        layout.LOGS,
        *sorted({layout.bucket(task) for task in (ids if archived is None else archived)}),
    ):
        for file in names_shown(store.fs, directory):
            name = parse_log(file)
            if name is not None and key(name.id) in keys:
                found.append((name, layout.join(directory, file)))
    return sorted(found, key=lambda log: (key(log[0].id), log[0].attempt, log[0].decider))


def read_log(store: Store, ref: str, attempt: int | None = None) -> list[Piece]:
    """Return the log of one attempt, by default the last; empty if it wrote nothing. Errors: NotFound, OSError."""
    task_id = locate.locate(store, ref).id
    logs = list_logs(store, [task_id])
    if attempt is None:
        logs = logs[-1:]
    else:
        logs = [log for log in logs if log[0].attempt == attempt]
        if not logs:
            raise NotFound(f"task {task_id} has no log of attempt {attempt}.")
    pieces = []
    for name, path in logs:
        try:
            pieces.append(Piece(name.attempt, name.decider, _read(store, path), name.id))
        except FileNotFoundError:
            raise NotFound(f"{path} has just been moved or deleted; try again.") from None
    return pieces


def read_logs(store: Store, ids: Sequence[str], attempt: int | None = None) -> Iterator[Piece]:
    """Yield the log of each task, in this order: of one attempt, by default the last. Errors: OSError.

    A task that has no such log is skipped.
    """
    logs: dict[str, list[Log]] = {}
    for log in list_logs(store, ids):
        if attempt in (None, log[0].attempt):
            logs.setdefault(key(log[0].id), []).append(log)
    for task_id in ids:
        for name, path in logs.get(key(task_id), [])[-1 if attempt is None else 0 :]:
            with contextlib.suppress(FileNotFoundError):
                yield Piece(name.attempt, name.decider, _read(store, path), name.id)


def _read(store: Store, path: str, offset: int = 0) -> bytes:
    return store.fs.read(path, MOST_BYTES, offset=offset)


def tail(store: Store, task_id: str) -> str:
    """Return the end of the last attempt's log, '' where there is none. Errors: none."""
    try:
        pieces = read_log(store, task_id)
    except (OSError, NotFound):
        return ""
    return pieces[-1].data[-TAIL_BYTES:].decode(errors="replace") if pieces else ""


def last_bytes(store: Store, task_id: str, most: int) -> Piece | None:
    """Return at most so many bytes of the end of the last attempt's log; None where it has none.

    Errors: NotFound where it has just been moved; OSError.
    """
    for name, path in list_logs(store, [task_id])[-1:]:
        try:
            begin = max(0, store.fs.stat(path).size - most)
            return Piece(name.attempt, name.decider, store.fs.read(path, most, offset=begin), name.id)
        except FileNotFoundError:
            raise NotFound(f"{path} has just been moved or deleted; try again.") from None
    return None


class Follower:
    """Reads the new output of one task or many, attempt after attempt."""

    def __init__(self, store: Store, begin: Mapping[str, int]) -> None:
        """begin: the first attempt to read, by task."""
        self._store = store
        self._begin = {key(task_id): attempt for task_id, attempt in begin.items()}
        self._ended: set[str] = set()
        self._looked = False
        self._read: dict[EndedName, int] = {}

    def end(self, ids: Iterable[str]) -> None:
        """Read these tasks once more, wherever their logs are, and then no longer: they write nothing more."""
        self._ended |= {key(task_id) for task_id in ids}

    def poll(self) -> list[Piece]:
        """Return the output since the last poll. Errors: OSError; the next poll then returns what this one missed."""
        pieces = []
        read, ended = dict(self._read), set(self._ended)
        # Only logs of ended tasks go to the archive, and that may be before the first look.
        for name, path in list_logs(self._store, self._begin, ended if self._looked else None):
            if name.attempt < self._begin[key(name.id)]:
                continue
            try:
                data = _read(self._store, path, read.get(name, 0))
            except FileNotFoundError:
                continue
            if data:
                read[name] = read.get(name, 0) + len(data)
                pieces.append(Piece(name.attempt, name.decider, data, name.id))
        self._read, self._looked = read, True
        for task_key in ended:
            self._begin.pop(task_key, None)
        self._ended -= ended
        return pieces


def follow(
    follower: Follower, ended: Callable[[], bool], pace: Pace, sleep: Callable[[float], object]
) -> Iterator[Piece]:
    """Yield pieces as they come, until the task has ended and all was read. Errors: OSError, and those of sleep."""
    while True:
        # Asked before the log is read: an attempt's output is in its log before it ends.
        over = pace.forgiving(ended, False)
        pieces = pace.forgiving(follower.poll, None)
        yield from pieces or ()
        if over and pieces is not None:
            return
        if pieces:
            pace.something_happened()
        sleep(pace.pause_s())
