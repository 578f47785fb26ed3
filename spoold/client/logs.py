"""What attempts wrote to stdout and stderr, read once or followed.

Law: a log is found by listing, and opened afresh each time, since only that shows what another machine wrote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spoold.client.pace import Pace
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.names import EndedName, key, parse_log
from spoold.store import locate
from spoold.store.absence import names_in
from spoold.store.store import Store

TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one attempt's log."""

    attempt: int
    worker: str
    data: bytes


def list_logs(store: Store, task_id: str) -> list[tuple[EndedName, str]]:
    """The logs of a task, oldest attempt first: name and path, wherever they are now. Errors: OSError."""
    found = []
    for directory in (layout.LOGS, layout.bucket(task_id)):
        for file in names_in(store.fs, directory):
            name = parse_log(file)
            if name is not None and key(name.id) == key(task_id):
                found.append((name, layout.join(directory, file)))
    return sorted(found, key=lambda log: (log[0].attempt, log[0].decider))


def read_log(store: Store, ref: str, attempt: int | None = None) -> list[Piece]:
    """The log of one attempt, the last one if none is named; empty if it wrote nothing. Errors: NotFound, OSError."""
    task_id = locate.locate(store, ref).id
    logs = list_logs(store, task_id)
    if attempt is None:
        logs = logs[-1:]
    else:
        logs = [log for log in logs if log[0].attempt == attempt]
        if not logs:
            raise NotFound(f"task {task_id} has no log of attempt {attempt}.")
    pieces = []
    for name, path in logs:
        try:
            pieces.append(Piece(name.attempt, name.decider, store.fs.read(path)))
        except FileNotFoundError:
            raise NotFound(f"{path} has just been moved or deleted; try again.") from None
    return pieces


def tail(store: Store, task_id: str) -> str:
    """The end of the last attempt's log, '' where there is none. Errors: none."""
    try:
        pieces = read_log(store, task_id)
    except (OSError, NotFound):
        return ""
    return pieces[-1].data[-TAIL_BYTES:].decode(errors="replace") if pieces else ""


class Follower:
    """Reads on where it left off, attempt after attempt."""

    def __init__(self, store: Store, task_id: str, *, from_attempt: int = 0) -> None:
        self._store = store
        self._id = task_id
        self._from = from_attempt
        self._read: dict[EndedName, int] = {}

    def poll(self) -> list[Piece]:
        """What was written since the last poll. Errors: OSError; what was missed comes with the next poll."""
        pieces = []
        read = dict(self._read)
        for name, path in list_logs(self._store, self._id):
            if name.attempt < self._from:
                continue
            try:
                data = self._store.fs.read(path, offset=read.get(name, 0))
            except FileNotFoundError:
                continue
            if data:
                read[name] = read.get(name, 0) + len(data)
                pieces.append(Piece(name.attempt, name.decider, data))
        self._read = read
        return pieces


def follow(follower: Follower, ended: Callable[[], bool], pace: Pace) -> Iterator[Piece]:
    """Pieces as they come, until the task has ended and all of it was read. Errors: OSError."""
    while True:
        # Asked before the log is read: what an attempt wrote is in its log before it ends.
        over = pace.forgiving(ended, False)
        pieces = pace.forgiving(follower.poll, None)
        yield from pieces or ()
        if over and pieces is not None:
            return
        if pieces:
            pace.something_happened()
        time.sleep(pace.pause_s())
