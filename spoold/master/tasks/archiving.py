"""completed/ and failed/ → archive/, so that the polled directories stay small, and old archived tasks → deleted.

A task file's own stamp is from its submitter's write, so the age of an archived task is that of the newest file
beside it: its result or its log. Old journals, and files that no process uses any more, are deleted here, too.

Law: the result and the logs of a task go into the archive before its file does: a reader that finds the task finds
them. In the end the file is deleted before its result and its logs. Ages are those of the results, by the server's
stamps, so that they are the same under any leader; a file whose age is not known is young. A task whose start a rate
still counts stays, since a new leader finds its record in results/ alone.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial

from spoold.master.listing.batch_members import open_tokens
from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import take_away
from spoold.master.state.tree_view import Place
from spoold.protocol import context_entry, layout, step
from spoold.protocol.lanes import own_lane
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import EndedName, ended_key_in, key, parse_archived, parse_ended, parse_events, parse_log
from spoold.protocol.request import Request, Verb
from spoold.rules.tree import archiving
from spoold.store import control, existence
from spoold.store.existence import names_in, names_unless_blocked
from spoold.store.lanes_and_archive import archive_record, archive_task, list_lanes, make_buckets
from spoold.store.mover import Fate
from spoold.store.store import clear_directory
from spoold.store.versioned_files import ENTRIES, STEPS

LOOK_EVERY_S = 1.0
# So many tasks in one step: archiving must keep up with quick work, and nothing may wait for it.
BATCH = 500
# Of so many tasks that ended before this leader came, the age is looked up in one step.
AGES = 200


class Retaining:
    """Retention, a bounded piece each step. A task that ends under this leader has the age since it was first seen.

    seen: when (monotonic, s) each task ended; older: those that ended before, whose age is to be looked up.
    """

    def __init__(self) -> None:
        self._seen: dict[State, dict[str, float]] = {State.COMPLETED: {}, State.FAILED: {}}
        self._older: dict[State, dict[str, None]] = {State.COMPLETED: {}, State.FAILED: {}}
        self._due: dict[State, deque[str]] = {State.COMPLETED: deque(), State.FAILED: deque()}
        self._looked_at: float | None = None
        self._uncleared: list[str] | None = None  # the directories that a gc request has not cleared yet

    def step(self, desk: Desk) -> None:
        """Archive tasks that were due at the last look; after a gc request, all. Errors: OSError."""
        asked = [request for request in desk.view.requests if request.verb is Verb.GC]
        ended = {State.COMPLETED: desk.view.completed, State.FAILED: desk.view.failed}
        self._look_back(desk, ended)
        rested = self._looked_at is None or desk.step.now.monotonic - self._looked_at >= LOOK_EVERY_S
        if rested or (asked and not any(self._due.values())):
            self._looked_at = desk.step.now.monotonic
            for state, names in ended.items():
                self._look(desk, state, names, all_of_them=bool(asked))
        if not asked:
            self._uncleared = None
        for state, names in ended.items():
            due = self._due[state]
            batch = [due.popleft() for _ in range(min(len(due), BATCH))]
            found = {file: names[file] for file in batch if file in names}
            if may := {file: name for file, name in found.items() if _may_go(desk, key(name.id))}:
                _archive(desk, state, may)
                if desk.step.cut:
                    due.extend(file for file in batch if file in names)
        left = (name for names in ended.values() for name in names.values())
        if asked and all(desk.starts.counts(key(name.id)) for name in left):
            self._clear_all(desk, asked)

    def _clear_all(self, desk: Desk, asked: list[Request]) -> None:
        """Clear the archive, some directories in each step, and then remove the requests. Errors: OSError."""
        if self._uncleared is None:
            self._uncleared = sorted(desk.store.fs.list(layout.ARCHIVE))
        while self._uncleared:
            clear_bucket(desk, layout.join(layout.ARCHIVE, self._uncleared[-1]))
            if desk.step.cut:
                return
            self._uncleared.pop()
            if self._uncleared and desk.late:
                desk.step.leave()
                return
        self._uncleared = None
        for request in asked:
            if take_away(desk, control.path(request)):
                desk.step.change()

    def _look(self, desk: Desk, state: State, names: Collection[str], *, all_of_them: bool) -> None:
        """Find the tasks that are due; before the ages of all are known, none but all of them."""
        seen, older = self._seen[state], self._older[state]
        for gone in [name for name in (*seen, *older) if name not in names]:
            seen.pop(gone, None)
            older.pop(gone, None)
        for name in names:
            if name not in older:
                seen.setdefault(name, desk.step.now.monotonic)
        stay = archiving.stay(state, desk.store.settings.retention, clear_all=all_of_them)
        if all_of_them or not older:
            found = {**dict.fromkeys(older, 0.0), **seen}
            self._due[state] = deque(archiving.due(found, desk.step.now.monotonic, stay.max_age_s, stay.keep))

    def _look_back(self, desk: Desk, ended: Mapping[State, Mapping[str, EndedName]]) -> None:
        """Look up the ages of tasks that had ended before this leader came. One that another leader had begun to
        archive is due, since its result is where readers of an ended task do not look. Errors: OSError.
        """
        if self._looked_at is None:
            self._older = {state: dict.fromkeys(names) for state, names in ended.items()}
        if desk.store.common.server() is None:
            return  # without the server's time no age is known
        for state, older in self._older.items():
            for name in desk.some(list(older)[:AGES]):
                if found := ended[state].get(name):
                    self._seen[state][name] = desk.step.now.monotonic - max(0.0, _ended_for_s(desk, name, found))
                del older[name]
            if older:
                desk.step.change()


def _ended_for_s(desk: Desk, file: str, name: EndedName) -> float:
    """For how long (s) it has ended: infinite if its result is in the archive already, 0 if that is nowhere."""
    age_s = age_of(desk, layout.join(layout.RESULTS, file), gone=math.inf)
    if age_s < math.inf:
        return age_s
    begun = name.archived("result") in names_in(desk.store.fs, layout.bucket(name.id), desk.view.blocked)
    return math.inf if begun else 0.0


def _may_go(desk: Desk, task_key: str) -> bool:
    return not (desk.ends.needs(task_key) or desk.starts.counts(task_key))


def _archive(desk: Desk, state: State, names: Mapping[str, EndedName]) -> None:
    names = {file: name for file, name in names.items() if layout.bucket(name.id) not in desk.view.blocked}
    make_buckets(desk.store.fs, (name.id for name in names.values()))
    ids = {key(name.id) for name in names.values()}
    # A task that its first attempt completed has that one result, unless this leader wrote another and came too late.
    # Only a listing shows the records of other tasks, and it costs more the more tasks have ended.
    late = {key(name.id) for name in map(parse_ended, desk.recorded) if name is not None}
    first = state is State.COMPLETED
    alone = {f: name for f, name in names.items() if first and name.attempt == 1 and key(name.id) not in late}
    others = ids - {key(name.id) for name in alone.values()}
    results = [*alone.items(), *_records(desk, layout.RESULTS, others, parse_ended)]
    logs = _records(desk, layout.LOGS, ids, parse_log)
    records: dict[str, list[tuple[str, EndedName, str]]] = {}
    for file, found in results:
        records.setdefault(key(found.id), []).append(
            (layout.join(layout.RESULTS, file), found, found.archived("result"))
        )
    for file, found in logs:
        records.setdefault(key(found.id), []).append((layout.join(layout.LOGS, file), found, file))
    for file, name in desk.some(names.items()):
        moved = [_archive_record(desk, *record) for record in records.get(key(name.id), ())]
        if all(moved):
            _archive_task(desk, state, file, name)


def _archive_record(desk: Desk, path: str, found: EndedName, archived: str) -> bool:
    """Move a result or a log; False where it stays, and its task with it."""
    moved = archive_record(desk.store, path, found, archived)
    stuck = not moved and moved.fate is not Fate.LOST
    if stuck and isinstance(moved.error, PermissionError):
        names_in(desk.store.fs, layout.bucket(found.id), desk.view.blocked)
    desk.recorded.pop(path.rpartition("/")[2], None)
    return not stuck


def _archive_task(desk: Desk, state: State, file: str, name: EndedName) -> None:
    moved = archive_task(desk.store, state, file, name)
    if desk.went(moved, name.id):
        desk.view.archived.add(key(name.id), shown_end(state, skipped=name.skipped))
        desk.view.unplace(key(name.id))
        desk.view.forget_place(Place(state, layout.COMPLETED if state is State.COMPLETED else layout.FAILED, file))
        desk.journal.note("ARCHIVED", name.id, name.attempt)


def _records(
    desk: Desk, directory: str, ids: set[str], parse: Callable[[str], EndedName | None]
) -> list[tuple[str, EndedName]]:
    """Return the results or logs of these tasks; only a listing shows the names of earlier attempts' records."""
    if not ids:
        return []
    near = [name for name in names_unless_blocked(desk.store.fs, directory) if ended_key_in(name) in ids]
    parsed = [(name, parse(name)) for name in sorted(near)]
    return [(name, found) for name, found in parsed if found is not None]


# Deletes for good: old archived tasks, old journals, and files that no process uses any more.


CLEAR_EVERY_S = 60.0


class Clearing:
    """Clears one archive directory at a time, once a minute: deletion is never in a hurry."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._bucket = 0
        self._rests_until: dict[str, float] = {}

    def step(self, desk: Desk) -> None:
        """Delete what is due, if it is time. Errors: OSError."""
        if self._at is not None and desk.step.now.monotonic - self._at < CLEAR_EVERY_S:
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
            path = context_entry.directory(batch)
            if now < self._rests_until.get(path, 0.0) or desk.view.members.has_open(batch):
                continue
            names = sorted(existence.names_in(desk.store.fs, path, desk.view.blocked))
            newest = max(filter(None, map(context_entry.parse_entry, names)), default=None)
            least_s = desk.store.settings.retention.archive_s
            age_s = age_of(desk, path if newest is None else layout.join(path, newest.encode()))
            self._rests_until[path] = now + min(archiving.LOOK_AGAIN_S, max(least_s - age_s, CLEAR_EVERY_S))
            if archiving.too_old(age_s, least_s) and desk.view.members.surely_over(batch, lambda: open_tokens(desk)):
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
            self._rests_until[path] = now + archiving.LOOK_AGAIN_S
            names = sorted(existence.names_in(desk.store.fs, path, desk.view.blocked))
            ages = [age_of(desk, layout.join(path, name)) for name in names] or [age_of(desk, path)]
            if archiving.too_old(min(ages), desk.store.settings.retention.tmp_s):
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
    for name in sorted(existence.names_in(desk.store.fs, directory, desk.view.blocked)):
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
        if not archiving.too_old(age_s, settings.archive_s):
            ages.append(age_s)
            continue
        for name in [*tasks, *records]:
            take_away(desk, layout.join(directory, name))
        desk.view.archived.discard(task_key)
    return 0.0 if desk.step.cut else archiving.none_due_s(ages, settings)


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
    for name in desk.some(sorted(existence.names_unless_blocked(fs, layout.EVENTS)), "journals"):
        events, path = parse_events(name), layout.join(layout.EVENTS, name)
        if events is None or events.writer == desk.store.writer:
            continue
        if archiving.too_old(age_of(desk, path), max_age_s):
            take_away(desk, path)


def _clear_abandoned(desk: Desk) -> None:
    """Delete the tmp directories of dead clients; living nodes keep theirs, reaped ones have lost theirs already.

    A client that was only asleep for that long gets an error at its next write, and begins again.
    """
    fs, max_age_s = desk.store.fs, desk.store.settings.retention.tmp_s
    writers = sorted(set(fs.list(layout.TMP)) - desk.view.beats.keys() - {desk.store.writer})
    for writer in desk.some(writers, "tmp"):
        path = layout.join(layout.TMP, writer)
        if archiving.too_old(age_of(desk, path), max_age_s):
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
