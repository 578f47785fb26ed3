"""The repairs of `spool fsck --repair`: the fixes that an audit chose, each carried out by renames.

Law: never while a leader or a worker lives, since then the tree is theirs; the caller makes sure. Nothing is thrown
away: a file that cannot stay where it is goes to rejected/ with its reason.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spoold.protocol import codec, layout
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import COUNT_MAX, EPOCH_MAX, NOBODY, LeaseName, TaskName, encode_order, parse_ended
from spoold.protocol.result import Code, Error, Result, Status
from spoold.rules.tree.audit import (
    DropLease,
    Fail,
    Finding,
    Fix,
    MakeDirectory,
    MakeLease,
    Relane,
    Rerun,
    SetAside,
    audit,
    confirmed,
)
from spoold.store import journal
from spoold.store.absence import listed
from spoold.store.store import Store, make_directory
from spoold.store.survey import survey
from spoold.system.filesystem import FileSystem

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
