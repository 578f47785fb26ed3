"""completed/ and failed/ → archive/ → gone. What the leader polls stays small; what is old goes in the end.

The result and the logs of a task go into the archive before its file does: whoever finds the task there finds them.
"""

from __future__ import annotations

import contextlib

from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_events, parse_log
from spoold.protocol.request import Verb
from spoold.rules import retention
from spoold.store import control, mover
from spoold.store.archive import archive_task, bucket_of
from spoold.store.store import clear_directory

LOOK_EVERY_S = 1.0
SWEEP_EVERY_S = 60.0


class Retaining:
    """Retention, a bounded piece each step. Ages count from when this leader first saw a task ended."""

    def __init__(self) -> None:
        self._seen: dict[State, dict[str, float]] = {State.COMPLETED: {}, State.FAILED: {}}
        self._looked_at: float | None = None
        self._swept_at: float | None = None
        self._bucket = 0

    def step(self, desk: Desk) -> None:
        """Archive what is due, and now and then delete what has been archived for long. Errors: OSError."""
        asked = [request for request in desk.view.requests if request.verb is Verb.GC]
        if not asked and self._looked_at is not None and desk.now.monotonic - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = desk.now.monotonic
        settings = desk.store.settings.retention
        ages = {State.COMPLETED: settings.completed_s, State.FAILED: settings.failed_s}
        for state, names in ((State.COMPLETED, desk.view.completed), (State.FAILED, desk.view.failed)):
            seen = self._seen[state]
            for gone in [name for name in seen if name not in names]:
                del seen[gone]
            for name in names:
                seen.setdefault(name, desk.now.monotonic)
            max_age_s, keep = (0.0, 0) if asked else (ages[state], settings.keep)
            due = retention.due(seen, desk.now.monotonic, max_age_s, keep)
            if due:
                _archive(desk, state, [names[name] for name in due])
        if asked and not desk.view.completed and not desk.view.failed:
            for request in asked:
                for bucket in sorted(desk.store.fs.list(layout.ARCHIVE)):
                    self._delete_old(desk, layout.join(layout.ARCHIVE, bucket), settings.archive_s)
                control.remove(desk.store.fs, request)
                desk.busy = True
        self._sweep(desk)

    def _sweep(self, desk: Desk) -> None:
        """One archive directory, the journals, and what nobody uses, once a minute: deletion is never in a hurry."""
        if self._swept_at is not None and desk.now.monotonic - self._swept_at < SWEEP_EVERY_S:
            return
        self._swept_at = desk.now.monotonic
        settings = desk.store.settings.retention
        buckets = sorted(desk.store.fs.list(layout.ARCHIVE))
        if buckets:
            self._bucket = (self._bucket + 1) % len(buckets)
            self._delete_old(desk, layout.join(layout.ARCHIVE, buckets[self._bucket]), settings.archive_s)
        self._delete_old(desk, layout.EVENTS, settings.events_s)
        _clear_abandoned(desk)
        _remove_idle_lanes(desk)

    @staticmethod
    def _delete_old(desk: Desk, directory: str, max_age_s: float) -> None:
        """Delete files not touched for that long, by the server's stamps: days, where minutes do not matter."""
        fs, writer = desk.store.fs, desk.store.writer
        for name in sorted(fs.list(directory)):
            events = parse_events(name)
            if events is not None and events.writer == writer:
                continue
            path = layout.join(directory, name)
            with contextlib.suppress(FileNotFoundError):
                if desk.now.wall - fs.stat(path).mtime_ns / 1e9 > max_age_s:
                    fs.unlink(path)


def _clear_abandoned(desk: Desk) -> None:
    """The tmp directories of clients that died; nodes that beat keep theirs, reaped ones have lost it already.

    A client that was only asleep for that long is told so by its next write, and begins again.
    """
    fs, max_age_s = desk.store.fs, desk.store.settings.retention.tmp_s
    for writer in sorted(set(fs.list(layout.TMP)) - desk.view.beats.keys() - {desk.store.writer}):
        path = layout.join(layout.TMP, writer)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if desk.now.wall - fs.stat(path).mtime_ns / 1e9 > max_age_s:
                clear_directory(fs, path)


def _remove_idle_lanes(desk: Desk) -> None:
    """Lanes that hold nothing, so that what is listed at every step does not grow with all that ever was.

    rmdir refuses a directory that something has just come into; whoever moves into a lane makes it if need be.
    """
    fs, used = desk.store.fs, desk.backlog.per_lane()
    for lane in [lane for lane, tasks in desk.view.ready.items() if not tasks and lane not in used]:
        for directory in (layout.READY, layout.WAITING):
            with contextlib.suppress(OSError):
                fs.rmdir(layout.join(directory, lane))
        del desk.view.ready[lane]


def _archive(desk: Desk, state: State, names: list[EndedName]) -> None:
    fs = desk.store.fs
    ids = {key(name.id) for name in names}
    # Earlier attempts left results and logs under names that only a listing tells.
    results = [n for n in map(parse_ended, sorted(fs.list(layout.RESULTS))) if n and key(n.id) in ids]
    logs = [n for n in map(parse_log, sorted(fs.list(layout.LOGS))) if n and key(n.id) in ids]
    for found in results:
        target = layout.join(bucket_of(desk.store, found.id), found.archived("result"))
        mover.move(fs, layout.join(layout.RESULTS, found.encode()), target)
    for log in logs:
        mover.move(fs, layout.join(layout.LOGS, log.log()), layout.join(bucket_of(desk.store, log.id), log.log()))
    for name in names:
        moved = archive_task(desk.store, state, name)
        if desk.went(moved, name.id):
            desk.view.archive(name.id, state)
            desk.view.where.pop(key(name.id), None)
            (desk.view.completed if state is State.COMPLETED else desk.view.failed).pop(name.encode(), None)
            desk.journal.note("ARCHIVED", name.id, name.attempt)
