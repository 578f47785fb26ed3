"""Deletes for good: old archived tasks, old journals, and files that no process uses any more.

A task file's own stamp is from its submitter's write, so the age of an archived task is that of the newest file
beside it: its result or its log.

Law: the server's clock and stamps give every age, and a file whose age is not known is young. The task file is
deleted before its result and its logs.
"""

from __future__ import annotations

import contextlib
from functools import partial

from spoold.master.desk import Desk
from spoold.master.membership import open_tokens
from spoold.master.rejecting import take_away
from spoold.protocol import entry, layout, step
from spoold.protocol.lanes import own_lane
from spoold.protocol.names import key, parse_archived, parse_events, parse_log
from spoold.rules.tree import retention
from spoold.store import absence
from spoold.store.context import ENTRIES
from spoold.store.lane_moves import list_lanes
from spoold.store.steps import STEPS
from spoold.store.store import clear_directory

EVERY_S = 60.0


class Clearing:
    """Clears one archive directory at a time, once a minute: deletion is never in a hurry."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._bucket = 0
        self._rests_until: dict[str, float] = {}

    def step(self, desk: Desk) -> None:
        """Delete what is due, if it is time. Errors: OSError."""
        if self._at is not None and desk.step.now.monotonic - self._at < EVERY_S:
            return
        self._at = desk.step.now.monotonic
        self._clear_archive(desk)
        self._clear_context(desk)
        self._clear_steps(desk)
        _clear_journals(desk)
        _clear_abandoned(desk)
        _remove_idle_lanes(desk)

    def _clear_archive(self, desk: Desk) -> None:
        """Clear the next directory in which a task may be due: each task in it costs a look at its age."""
        buckets = sorted(desk.store.fs.list(layout.ARCHIVE))
        for _ in buckets:
            self._bucket = (self._bucket + 1) % len(buckets)
            directory = layout.join(layout.ARCHIVE, buckets[self._bucket])
            if desk.step.now.monotonic >= self._rests_until.get(directory, 0.0):
                self._rests_until[directory] = desk.step.now.monotonic + clear_bucket(desk, directory)
                return

    def _clear_context(self, desk: Desk) -> None:
        """Remove what a batch shared, one batch at a time, once nobody has added to it for as long as an archived
        task stays. Not while a task that has not ended is of this batch, or may be.
        """
        now = desk.step.now.monotonic
        for batch in ENTRIES.owners(desk.store.fs):
            path = entry.directory(batch)
            if now < self._rests_until.get(path, 0.0) or desk.view.members.has_open(batch):
                continue
            names = sorted(absence.names_in(desk.store.fs, path, desk.view.blocked))
            newest = max(filter(None, map(entry.parse_entry, names)), default=None)
            least_s = desk.store.settings.retention.archive_s
            age_s = age_of(desk, path if newest is None else layout.join(path, newest.encode()))
            self._rests_until[path] = now + min(retention.LOOK_AGAIN_S, max(least_s - age_s, EVERY_S))
            if retention.too_old(age_s, least_s) and desk.view.members.surely_over(batch, lambda: open_tokens(desk)):
                _remove(desk, path, names)
                del self._rests_until[path]
            return

    def _clear_steps(self, desk: Desk) -> None:
        """Remove the steps of one task that is neither open nor among the ended ones that people look at first. One
        that is on the move shows again within the time for which nobody may have saved anything.
        """
        now = desk.step.now.monotonic
        for task in STEPS.owners(desk.store.fs):
            path = step.directory(task)
            if now < self._rests_until.get(path, 0.0) or desk.view.place(task) is not None:
                continue
            self._rests_until[path] = now + retention.LOOK_AGAIN_S
            names = sorted(absence.names_in(desk.store.fs, path, desk.view.blocked))
            ages = [age_of(desk, layout.join(path, name)) for name in names] or [age_of(desk, path)]
            if retention.too_old(min(ages), desk.store.settings.retention.tmp_s):
                _remove(desk, path, names)
                del self._rests_until[path]
            return


def _remove(desk: Desk, path: str, names: list[str]) -> None:
    for name in desk.some(names):
        take_away(desk, layout.join(path, name))
    with contextlib.suppress(OSError):
        desk.store.fs.rmdir(path)


def clear_bucket(desk: Desk, directory: str) -> float:
    """Delete the tasks of one archive directory that ended too long ago; the task file goes before its result.

    Returns for how long (s) none is due, among the present tasks and those to come. Errors: OSError.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(absence.names_in(desk.store.fs, directory, desk.view.blocked)):
        archived, log = parse_archived(name), parse_log(name)
        found = archived[0] if archived else log
        if found is not None:
            groups.setdefault(key(found.id), []).append(name)
    settings = desk.store.settings.retention
    ages: list[float] = []  # of those that stay
    for task_key, names in desk.some(groups.items(), directory):
        tasks = [name for name in names if _is_task(name)]
        records = [name for name in names if name not in tasks]
        age_s = min(age_of(desk, layout.join(directory, name)) for name in records or tasks)
        if not retention.too_old(age_s, settings.archive_s):
            ages.append(age_s)
            continue
        for name in [*tasks, *records]:
            take_away(desk, layout.join(directory, name))
        desk.view.archived.discard(task_key)
    return 0.0 if desk.step.cut else retention.none_due_s(ages, settings)


def _is_task(name: str) -> bool:
    parsed = parse_archived(name)
    return parsed is not None and parsed[1] != "result"


def age_of(desk: Desk, path: str, *, gone: float = 0.0) -> float:
    """Return a file's age (s) by the clock of the server, which stamped it; 0 while its time is not known, and `gone`
    where there is no such file.

    By its own clock, a leader that is a year ahead would delete everything at once.
    """
    now = desk.store.common.server()
    try:
        return 0.0 if now is None else now - desk.store.fs.stat(path).mtime_ns / 1e9
    except FileNotFoundError:
        return gone


def _clear_journals(desk: Desk) -> None:
    """Delete journals that have not been written for long; never this leader's own."""
    fs, max_age_s = desk.store.fs, desk.store.settings.retention.events_s
    for name in desk.some(sorted(absence.names_unless_blocked(fs, layout.EVENTS)), "journals"):
        events, path = parse_events(name), layout.join(layout.EVENTS, name)
        if events is None or events.writer == desk.store.writer:
            continue
        if retention.too_old(age_of(desk, path), max_age_s):
            take_away(desk, path)


def _clear_abandoned(desk: Desk) -> None:
    """Delete the tmp directories of dead clients; living nodes keep theirs, reaped ones have lost theirs already.

    A client that was only asleep for that long gets an error at its next write, and begins again.
    """
    fs, max_age_s = desk.store.fs, desk.store.settings.retention.tmp_s
    writers = sorted(set(fs.list(layout.TMP)) - desk.view.beats.keys() - {desk.store.writer})
    for writer in desk.some(writers, "tmp"):
        path = layout.join(layout.TMP, writer)
        if retention.too_old(age_of(desk, path), max_age_s):
            try:
                clear_directory(fs, path, partial(take_away, desk))
            except PermissionError:
                desk.view.blocked.add(path)


def _remove_idle_lanes(desk: Desk) -> None:
    """Remove empty lanes, so that the listings of every step do not grow with all past lanes.

    rmdir refuses a directory that has just received something; a node that moves into a lane makes it if needed. The
    lane of another type stays while a claim may be of it: it tells the next leader so.
    """
    fs, ready, used = desk.store.fs, desk.view.ready, desk.backlog.per_lane()
    for lane in desk.some(sorted(ready.keys() | list_lanes(fs, layout.WAITING).keys()), "idle lanes"):
        if ready.get(lane) or lane in used or (own_lane(lane) != lane and desk.learned.may_run_in(lane)):
            continue
        for directory in (layout.READY, layout.WAITING):
            with contextlib.suppress(OSError):
                fs.rmdir(layout.join(directory, lane))
        ready.pop(lane, None)
