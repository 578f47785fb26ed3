"""The stdout and stderr of attempts, read once or followed; how attempts ended, and the last line that they wrote.

Law: a log is found by listing, and opened anew each time, since only that shows the writes of another machine. A last
line costs one read of at most LAST_LINE_BYTES, of the log that the result names; a log that cannot be read has none.
A name in a result that is no log of that task is not followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from spoold.client.read.task_info import TaskInfo, result_of
from spoold.client.spool.waiting import Pace, read_result
from spoold.protocol import layout
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.names import EndedName, key, parse_log
from spoold.protocol.result import Result, merge_of, merged_by, message_of, remark_of, unsaved_of, work_of
from spoold.rules.answers.task_facts import EndedAttempt
from spoold.rules.answers.why_failed import began, silence, speaks
from spoold.store import task_location
from spoold.store.existence import names_shown
from spoold.store.store import Store
from spoold.store.task_location import Located

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
    task_id = task_location.locate(store, ref).id
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


# How attempts ended, and the last line that they wrote.


LAST_LINE_BYTES = 4096


def last_line(store: Store, path: str) -> str:
    """Return the last line of a log that holds more than blanks; '' where there is none. Errors: none."""
    try:
        size = store.fs.stat(path).size
        data = store.fs.read(path, LAST_LINE_BYTES, offset=max(0, size - LAST_LINE_BYTES))
    except OSError:
        return ""
    lines = [line for line in data.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def last_words(store: Store, result: Result, *, archived: bool = False) -> str:
    """Return the last line that a failed attempt wrote, where its program is at fault; else ''. Errors: none."""
    name = parse_log(result.log) if result.log else None
    if not result.log or name is None or key(name.id) != key(result.task_id):
        return ""
    if result.error is None or not speaks(result.error.code):
        return ""
    return last_line(store, layout.join(layout.bucket(name.id) if archived else layout.LOGS, result.log))


def ended(result: Result) -> EndedAttempt:
    """Return an attempt that ended, as its result tells it."""
    code = "" if result.error is None else str(result.error.code)
    how = result.attempt, str(result.status), result.worker_id, result.completed_at, code, message_of(result)
    started, remark, work = began(code, result.started_at), remark_of(result), work_of(result.output)
    frozen_s, wrote = result.frozen_s or 0.0, bool(result.log)
    return EndedAttempt(*how, frozen_s=frozen_s, started=started, wrote=wrote, remark=remark, work=work)


def ending(store: Store, located: Located, result: Result) -> EndedAttempt:
    """Return the attempt that ended a task, with its last line if it failed by itself. Errors: none."""
    last_line = last_words(store, result, archived=located.archived)
    return replace(ended(result), last_line=last_line, work=work_done(store, result.output))


def work_done(store: Store, output: Any) -> str:
    """Return what the work of an agent came to, as `work_of` says it, with the end of its merge where that has ended.

    Errors: none.
    """
    found = None
    if merge := merged_by(output):
        with suppress(OSError, SpoolError):
            found = result_of(store, merge)
    return work_of(output, "" if found is None else merge_of(found))


def work_of_task(store: Store, info: TaskInfo) -> str:
    """Return what the work of a task's agent came to, or what it merged, by the attempt that ended it, in one line;
    '' for any other task. Errors: none."""
    output = info.attempts[-1].output if info.completed_at and info.attempts else None
    return unsaved_of(output) or work_done(store, output)


def why_silent(store: Store, located: Located) -> str:
    """Return why a task without output has none: it did not begin; '' for any other task. Errors: OSError."""
    last = None
    with suppress(NotFound, BadFile):
        last = ended(read_result(store, located)) if located.result else None
    return silence(located.id, located.state, last)
