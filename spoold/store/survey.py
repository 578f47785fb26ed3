"""The whole tree as values: for `spool fsck`, and for `spool status` where nobody leads.

Law: looks and never touches; works offline, without a leader, on a spool with a broken token. Directories are listed
in the order in which tokens flow and results after the tasks that need them, so that a token that moves meanwhile is
seen twice rather than not at all; `rules.audit.confirmed` tells the two apart. Archived files are known by name only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from spoold.protocol import codec, layout
from spoold.protocol.drop import concerns_us
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.glance import is_task
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    EndedName,
    LeaseName,
    TaskName,
    is_node,
    parse_archived,
    parse_beat,
    parse_door,
    parse_ended,
    parse_events,
    parse_lease,
    parse_log,
    parse_returned,
    parse_snapshot,
    parse_task,
)
from spoold.protocol.request import parse_request
from spoold.protocol.result import Result
from spoold.protocol.snapshot import TaskCounts
from spoold.rules.policy import rank
from spoold.rules.sighting import Content, Record, Survey, Token
from spoold.store.absence import names_in
from spoold.store.archive import list_archived
from spoold.store.doors import list_standing
from spoold.store.lanes import list_lanes, list_tasks
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem

_PARSERS = {
    layout.HEARTBEATS: parse_beat,
    layout.CONTROL: parse_request,
    layout.EVENTS: parse_events,
    layout.LOGS: parse_log,
}
_ARCHIVED_AS = {State.COMPLETED.value: State.COMPLETED, State.FAILED.value: State.FAILED}


@dataclass(slots=True)
class _Notes:
    """A survey under way."""

    store: Store
    tokens: list[Token] = field(default_factory=list)
    results: list[Record] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    epoch: int = 0

    def list(self, path: str) -> list[str]:
        """The names in a directory; one that is missing or unreadable is noted and empty."""
        try:
            return sorted(self.store.fs.list(path))
        except FileNotFoundError:
            if path in layout.TREE:
                self.missing.append(path)
        except NotADirectoryError:
            self.foreign.append(path)
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
        return []

    def read(self, path: str) -> bytes | None:
        """A file's content; None where it has moved on, or cannot be read, which is noted."""
        try:
            return self.store.fs.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
            return None

    def saw(self, order: str) -> None:
        """Orders carry the epoch of the leader that gave them."""
        self.epoch = max(self.epoch, int(order.partition("-")[2], 36))


def survey(store: Store) -> Survey:
    """Look at everything once. Errors: OSError when the root cannot be listed."""
    root = sorted(store.fs.list(""))
    notes = _Notes(store)
    known = {layout.MARKER, layout.SETTINGS, layout.LOCK, *layout.TREE}
    notes.foreign.extend(name for name in root if name not in known)
    drops = sum(concerns_us(name) for name in notes.list(layout.PENDING))
    standing = _standing(notes)
    for state in (State.WAITING, State.READY):
        _branches(notes, state, lambda name: parse_lane(name) is not None)
    workers = _branches(notes, State.CLAIMED, is_node)
    _returned(notes)
    for state in (State.FAILED, State.COMPLETED):
        _ended(notes, state)
    _results(notes)
    _archived(notes)
    for directory, parse in _PARSERS.items():
        notes.foreign.extend(layout.join(directory, n) for n in notes.list(directory) if parse(n) is None)
    beats = (parse_beat(name) for name in notes.list(layout.HEARTBEATS))
    leases = _leases(notes)
    _snapshots(notes)
    return Survey(
        tokens=tuple(notes.tokens),
        results=tuple(notes.results),
        leases=tuple(leases),
        nodes=frozenset(beat.node for beat in beats if beat is not None),
        workers=tuple(workers),
        writers=tuple(notes.list(layout.TMP)),
        rejected=tuple(notes.list(layout.REJECTED)),
        standing=tuple(standing),
        foreign=tuple(notes.foreign),
        missing=tuple(sorted({*notes.missing, *(set(layout.TREE) - set(root))})),
        unreadable=tuple(notes.unreadable),
        drops=drops,
        epoch=notes.epoch,
    )


@dataclass(frozen=True, slots=True)
class Census:
    """How many tasks are where, from names alone; types: type → how many wait and are active, as far as lanes tell.

    What is claimed stands in no lane: claims gives worker → what it holds, and its heartbeat tells the types.
    """

    tasks: TaskCounts
    types: dict[str, dict[str, int]]
    claims: dict[str, tuple[TaskName, ...]]


def census(fs: FileSystem) -> Census:
    """Count by listing; no task file is opened. Errors: OSError."""
    number: Counter[str] = Counter()
    types: dict[str, dict[str, int]] = {}
    drops = fs.list(layout.PENDING)
    number[State.PENDING] = sum(map(concerns_us, drops)) + sum(1 for _ in list_standing(fs))
    for state in (State.WAITING, State.READY):
        for name, lane in list_lanes(fs, state).items():
            found = sum(map(is_task, names_in(fs, layout.join(state, name))))
            number[state] += found
            if found:
                kind = types.setdefault(lane.type, {"waiting": 0, "active": 0})
                kind["waiting" if state is State.WAITING else "active"] += found
    claims = list_claims(fs)
    number[State.CLAIMED] = sum(map(len, claims.values()))
    number[State.WAITING] += sum(parse_returned(name) is not None for name in fs.list(layout.RETURNED))
    for state in (State.FAILED, State.COMPLETED):
        number[state] += sum(parse_ended(name) is not None for name in fs.list(state))
    number.update(kind for _, _, kind in list_archived(fs))
    number[State.REJECTED] = sum(not name.endswith(layout.REASON) for name in fs.list(layout.REJECTED))
    counts = TaskCounts.model_validate({field: number[field] for field in TaskCounts.model_fields})
    return Census(counts, types, claims)


def list_claims(fs: FileSystem) -> dict[str, tuple[TaskName, ...]]:
    """What every worker holds, by the listing. Errors: OSError."""
    workers = sorted(filter(is_node, fs.list(layout.CLAIMED)))
    found = {worker: list_tasks(fs, layout.join(layout.CLAIMED, worker)) for worker in workers}
    return {worker: tuple(name for _, name in sorted(names.items())) for worker, names in found.items()}


def _branches(notes: _Notes, state: State, is_branch: Callable[[str], bool]) -> list[str]:
    """The tokens in the lanes of waiting/ and ready/, or in the claim directories of workers."""
    branches = []
    for branch in notes.list(state):
        directory = layout.join(state, branch)
        if not is_branch(branch):
            notes.foreign.append(directory)
            continue
        branches.append(branch)
        for name in notes.list(directory):
            _task(notes, state, layout.join(directory, name), parse_task(name), branch)
    return branches


def _returned(notes: _Notes) -> None:
    for name in notes.list(layout.RETURNED):
        parsed = parse_returned(name)
        _task(notes, State.RETURNED, layout.join(layout.RETURNED, name), parsed[0] if parsed else None, "")


def _task(notes: _Notes, state: State, path: str, name: TaskName | None, branch: str) -> None:
    if name is None:
        notes.foreign.append(path)
        return
    notes.saw(name.order)
    notes.tokens.append(Token(state, path, name, branch, None, _content(notes, path)))


def _ended(notes: _Notes, state: State) -> None:
    for name in notes.list(state):
        path = layout.join(state, name)
        parsed = parse_ended(name)
        if parsed is None:
            notes.foreign.append(path)
        else:
            notes.tokens.append(Token(state, path, parsed, "", state, _content(notes, path)))


def _content(notes: _Notes, path: str) -> Content | None:
    data = notes.read(path)
    if data is None:
        return None
    try:
        task = codec.load_task(data, path)
        settings = notes.store.settings
        return Content(task.id, task.lane.encode(), task.conditional, rank(task, settings))
    except BadFile as error:
        field_name = f"{error.field}: " if error.field else ""
        return Content(problem=f"{field_name}{error.problem}")
    except BadName as error:
        return Content(problem=str(error))


def _results(notes: _Notes) -> None:
    wanted = {token.name for token in notes.tokens if token.ended is not None}
    for name in notes.list(layout.RESULTS):
        path = layout.join(layout.RESULTS, name)
        parsed = parse_ended(name)
        if parsed is None:
            notes.foreign.append(path)
        else:
            notes.results.append(_record(notes, path, parsed, counts=parsed in wanted))


def _record(notes: _Notes, path: str, name: EndedName, *, counts: bool) -> Record:
    data = notes.read(path) if counts else None
    if data is None:
        return Record(path, name)
    try:
        result = codec.load_model(Result, data, path)
    except BadFile as error:
        return Record(path, name, read=True, problem=f"{error.field or 'it'}: {error.problem}")
    return Record(path, name, True, result.task_id, result.attempt, result.status)


def _archived(notes: _Notes) -> None:
    for bucket in notes.list(layout.ARCHIVE):
        directory = layout.join(layout.ARCHIVE, bucket)
        for name in notes.list(directory):
            path = layout.join(directory, name)
            parsed = parse_archived(name)
            if parsed is None:
                if parse_log(name) is None:
                    notes.foreign.append(path)
            elif parsed[1] in _ARCHIVED_AS:
                notes.tokens.append(Token(State.ARCHIVE, path, parsed[0], "", _ARCHIVED_AS[parsed[1]]))
            else:
                notes.results.append(Record(path, parsed[0]))


def _standing(notes: _Notes) -> list[str]:
    """What is being admitted: paths of batches and tasks in the doors of leaders."""
    doors = notes.list(layout.ADMITTING)
    notes.foreign.extend(layout.join(layout.ADMITTING, name) for name in doors if parse_door(name) is None)
    standing = list(list_standing(notes.store.fs)) if doors else []
    for found in standing:
        notes.epoch = max(notes.epoch, found.door.epoch)
        notes.saw(found.name.order)
    return [found.path for found in standing]


def _leases(notes: _Notes) -> list[LeaseName]:
    leases = []
    for name in notes.list(layout.MASTER):
        parsed = parse_lease(name)
        if parsed is None:
            notes.foreign.append(layout.join(layout.MASTER, name))
        else:
            notes.epoch = max(notes.epoch, parsed.epoch)
            leases.append(parsed)
    return leases


def _snapshots(notes: _Notes) -> None:
    for name in notes.list(layout.STATUS):
        parsed = parse_snapshot(name)
        if parsed is None:
            notes.foreign.append(layout.join(layout.STATUS, name))
        else:
            notes.epoch = max(notes.epoch, parsed.epoch)
