"""The whole tree as values, and the repairs of `spool fsck --repair`: the fixes that an audit chose, done by renames.

Law: a look never touches; it works offline, without a leader, on a spool with a broken token. Directories are listed
in the order in which tokens flow, and results after the tasks that need them, so that a token that moves meanwhile is
seen twice rather than not at all; `rules.tree.audit.confirmed` distinguishes the two. Archived files are known by
name only. Nothing is repaired while a leader or a worker lives, since then the tree is theirs; the caller makes sure.
Nothing is thrown away: a file that cannot stay where it is goes to rejected/ with its reason.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from spoold.protocol import codec, layout
from spoold.protocol.admission_names import parse_door
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.feed_checkpoint import parse_checkpoint
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import (
    COUNT_MAX,
    EPOCH_MAX,
    NOBODY,
    EndedName,
    LeaseName,
    TaskName,
    concerns_us,
    encode_order,
    is_conditional,
    is_node,
    parse_archived,
    parse_beat,
    parse_ended,
    parse_events,
    parse_log,
    parse_returned,
    parse_snapshot,
    parse_task,
)
from spoold.protocol.request import parse_request
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.settings_change import parse_change
from spoold.protocol.task import Task
from spoold.rules.attempts.task_policy import rank, retry_policy
from spoold.rules.tree.audit import (
    Content,
    DropLease,
    Fail,
    Finding,
    Fix,
    MakeDirectory,
    MakeLease,
    Record,
    Relane,
    Rerun,
    SetAside,
    Survey,
    Token,
    audit,
    confirmed,
)
from spoold.store import journal, versioned_files
from spoold.store.existence import listed
from spoold.store.leader_files import list_standing, parse_token
from spoold.store.path_conflicts import obstacle
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem, NotRegularError

_PARSERS = {
    layout.HEARTBEATS: parse_beat,
    layout.CONTROL: parse_request,
    layout.EVENTS: parse_events,
    layout.LOGS: parse_log,
    layout.CHANGES: parse_change,
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
    irregular: list[tuple[str, str]] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    epoch: int = 0

    def list(self, path: str) -> list[str]:
        """The names in a directory; a missing or unreadable directory is noted and empty."""
        try:
            return sorted(self.store.fs.list(path))
        except FileNotFoundError:
            if path in layout.TREE and path not in layout.LATER:
                self.missing.append(path)
        except NotADirectoryError:
            said = obstacle(self.store.fs, path) if path in layout.TREE else None
            if said is None:
                self.foreign.append(path)
            else:
                self.blocked[path] = said
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
        return []

    def read(self, path: str) -> bytes | None:
        """A file's content; None if it has moved on, or cannot be read, which is noted."""
        try:
            return self.store.fs.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
            return None

    def may_read(self, path: str) -> bool:
        """Whether the entry is a readable file; any other entry is noted."""
        try:
            self.store.fs.read(path, 1)
        except FileNotFoundError:
            return False
        except NotRegularError as error:
            self.irregular.append((path, str(error.strerror)))
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
        else:
            return True
        return False

    def saw(self, order: str) -> None:
        """Note the epoch of the leader that gave this order."""
        self.saw_epoch(int(order.partition("-")[2], 36))

    def saw_epoch(self, epoch: int) -> None:
        """Note an epoch. One that is too high to be followed by another was no leader's, and is ignored."""
        if epoch < EPOCH_MAX - 1:
            self.epoch = max(self.epoch, epoch)


def survey(store: Store) -> Survey:
    """Look at everything once. Errors: OSError when the root cannot be listed."""
    root = sorted(store.fs.list(""))
    notes = _Notes(store)
    notes.foreign.extend(sorted({*root} - {layout.MARKER, layout.SETTINGS, layout.LOCK, *layout.TREE}))
    notes.foreign.extend([*versioned_files.ENTRIES.foreign(notes.list), *versioned_files.STEPS.foreign(notes.list)])
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
        drops=sum(concerns_us(name) for name in notes.list(layout.PENDING)),
        tokens=tuple(notes.tokens),
        results=tuple(notes.results),
        leases=tuple(leases),
        nodes=frozenset(beat.node for beat in beats if beat is not None),
        workers=tuple(workers),
        writers=tuple(notes.list(layout.TMP)),
        rejected=tuple(notes.list(layout.REJECTED)),
        standing=tuple(standing),
        irregular=tuple(notes.irregular),
        foreign=tuple(notes.foreign),
        missing=tuple(sorted({*notes.missing, *(set(layout.TREE) - layout.LATER - set(root))})),
        unreadable=tuple(notes.unreadable),
        blocked=tuple(sorted(notes.blocked.items())),
        epoch=notes.epoch,
    )


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


def _conditional(task: Task, path: str) -> bool:
    """Whether the name of a task is to say that it has conditions. A leader that knew a budget per batch said so of a
    task with a batch; one of a release without budgets did not of a task with nothing but an own budget.
    """
    if is_conditional(path):
        return task.conditional or task.batch is not None
    return task.model_copy(update={"budget": {}}).conditional


def _content(notes: _Notes, path: str) -> Content | None:
    data = notes.read(path)
    if data is None:
        return None
    try:
        task = codec.load_task(data, path)
        settings = notes.store.settings
        raises = retry_policy(task, settings).memory_factor > 1
        return Content(task.id, task.lane.encode(), _conditional(task, path), rank(task, settings), raises=raises)
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
    """The files being admitted: paths of batches and tasks in the doors of leaders."""
    doors = notes.list(layout.ADMITTING)
    notes.foreign.extend(layout.join(layout.ADMITTING, name) for name in doors if parse_door(name) is None)
    closed: set[str] = set()
    standing = list(list_standing(notes.store.fs, closed)) if doors else []
    notes.unreadable.extend((door, os.strerror(errno.EACCES)) for door in sorted(closed))
    files = []
    for found in standing:
        notes.saw_epoch(found.door.epoch)
        notes.saw(found.name.order)
        if notes.may_read(found.path):
            files.append(found.path)
    return files


def _leases(notes: _Notes) -> list[LeaseName]:
    leases = []
    for name in notes.list(layout.MASTER):
        parsed = parse_token(name)
        if parsed is None:
            notes.foreign.append(layout.join(layout.MASTER, name))
        else:
            notes.saw_epoch(parsed.epoch)
            leases.append(parsed)
    return leases


def _snapshots(notes: _Notes) -> None:
    for name in notes.list(layout.STATUS):
        parsed = parse_snapshot(name) or parse_checkpoint(name)
        if parsed is None:
            notes.foreign.append(layout.join(layout.STATUS, name))
        else:
            notes.saw_epoch(parsed.epoch)


# The repairs of `spool fsck --repair`: the fixes that an audit chose, each carried out by renames.


# A second token moves out of the way before the first one, so that the two cannot meet.
_STAGES: tuple[tuple[type[Fix], ...], ...] = (
    (MakeDirectory,),
    (MakeLease, DropLease, SetAside),
    (Relane, Rerun, Fail),
)


@dataclass(frozen=True, slots=True)
class Mended:
    """One fix, carried out or not: done says which, what describes it in a sentence."""

    finding: Finding
    done: bool
    what: str


def repair(store: Store, findings: list[Finding]) -> list[Mended]:
    """Carry out the fixes, stage by stage. A fix that fails says so in `what`, and no later stage follows.

    A fix was chosen for the tree as it was. Before each further stage the tree is audited anew, and only earlier
    findings that are still true are fixed.
    """
    mended: list[Mended] = []
    for stage in _STAGES:
        fixes = [(finding, finding.fix) for finding in findings if isinstance(finding.fix, stage)]
        if not fixes:
            continue
        with _writing(store, stage):
            mended += [_try(store, finding, fix) for finding, fix in fixes]
        if not all(step.done for step in mended):
            return mended
        findings = confirmed(findings, audit(survey(store)))
    return mended


@contextmanager
def _writing(store: Store, stage: tuple[type[Fix], ...]) -> Iterator[None]:
    """Open this writer's tmp/ once all directories are in place, and close it at the end."""
    if MakeDirectory not in stage:
        store.open_tmp()
    try:
        yield
    finally:
        store.close_tmp()


def _try(store: Store, finding: Finding, fix: Fix) -> Mended:
    try:
        return Mended(finding, True, _carry_out(store, fix))
    except OSError as error:
        return Mended(finding, False, f"{finding.paths[0]}: {error.strerror or error}")


def _carry_out(store: Store, fix: Fix) -> str:
    """Carry out a fix; return a sentence about it. Errors: OSError."""
    match fix:
        case MakeDirectory(path):
            make_directory(store.fs, path)
            return f"made {path}/"
        case MakeLease(above):
            return _make_lease(store, above)
        case DropLease(path):
            store.fs.unlink(path)
            return f"removed {path}"
        case SetAside():
            return _set_aside(store, fix)
        case Relane():
            return _to_waiting(store, fix.path, fix.lane, fix.name)
        case Rerun():
            return _rerun(store, fix)
        case Fail():
            return _fail(store, fix)


def _make_lease(store: Store, above: int) -> str:
    """Names carry most epochs; only the journals know a leader that admitted nothing and left no snapshot."""
    told = (event.epoch or 0 for event in journal.Reader(store.fs).read())
    epoch = max([above, *(epoch for epoch in told if epoch < EPOCH_MAX - 1)]) + 1
    path = layout.join(layout.MASTER, LeaseName(epoch, 0, NOBODY).encode())
    store.fs.write(path, b"", durable=True)
    return f"made {path}"


def _set_aside(store: Store, fix: SetAside) -> str:
    name = _free_name(store.fs, fix.path.rpartition("/")[2])
    reason = {
        "drop": name,
        "id": fix.id,
        "at": store.stamp(),
        "file": fix.path,
        "field": "id",
        "problem": f"a second token of task {fix.id}; {fix.kept} is further along.",
        "mend": "compare the two; drop this one again under another id if both are meant.",
    }
    target = layout.join(layout.REJECTED, name)
    store.publish(f"{target}{layout.REASON}", codec.dump(reason), durable=store.durable)
    _move(store, fix.path, target)
    return f"moved {fix.path} to {target}"


def _free_name(fs: FileSystem, name: str) -> str:
    taken = set(fs.list(layout.REJECTED))
    stem, number = name.removesuffix(".json"), 1
    while name in taken or f"{name}{layout.REASON}" in taken:
        number += 1
        name = f"{stem}.{number}.json"
    return name


def _to_waiting(store: Store, path: str, lane: str, name: TaskName) -> str:
    target = layout.waiting(lane, name.encode())
    make_directory(store.fs, layout.join(layout.WAITING, lane))
    _move(store, path, target)
    return f"moved {path} to {target}"


def _rerun(store: Store, fix: Rerun) -> str:
    """A later attempt than any that left a result, so that its own result has a free name."""
    results = (parse_ended(name) for name in store.fs.list(layout.RESULTS))
    last = max([fix.name.attempt, *(r.attempt for r in results if r is not None and r.id == fix.name.id)])
    name = TaskName(
        rank=fix.rank,
        order=encode_order(int(store.clock.wall() * 1e6), 0),
        id=fix.name.id,
        attempt=min(last + 1, COUNT_MAX),
        conditional=fix.conditional,
    )
    return _to_waiting(store, fix.path, fix.lane, name)


def _fail(store: Store, fix: Fail) -> str:
    ended = fix.name.ended(store.writer)
    result = Result(
        task_id=fix.name.id,
        attempt=fix.name.attempt,
        worker_id=store.writer,
        status=Status.FAILURE,
        completed_at=store.stamp(),
        error=Error(code=Code.INVALID_TASK, message=fix.problem),
    )
    store.fs.write(layout.join(layout.RESULTS, ended.encode()), codec.dump(result), durable=store.durable)
    target = layout.join(layout.FAILED, ended.encode())
    _move(store, fix.path, target)
    return f"moved {fix.path} to {target}"


def _move(store: Store, path: str, target: str) -> None:
    """Move a token to a free name. Errors: OSError, also for a lost race: no other process should be at work."""
    if listed(store.fs, target):
        raise FileExistsError(errno.EEXIST, "the name is taken already", target)
    moved = store.move(Mover.FSCK, "REPAIRED", path, target)
    if not moved:
        raise moved.error or OSError(f"{path}: the move ended as {moved.fate}")
