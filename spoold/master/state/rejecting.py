"""Refuses entries that are no task, or whose id is taken: into rejected/, with the reason beside them.

Law: the reason is published before the entry is moved, so a rejection that was seen to succeed always has one. The
content of a directory is not read and not removed. Whether an id is taken is not decided in doubt: while the other
task moves or cannot be read, the drop waits. A damaged task counts as different, since its content is unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from spoold.master.state.fingerprints import IN_REASON, Content, digest_of
from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import still_archived
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import first_stem, key, slug
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Admit, Known, Reject
from spoold.store import existence, mover
from spoold.store.attempt_records import ASIDE, set_aside
from spoold.store.existence import regular
from spoold.store.lanes_and_archive import find_archived
from spoold.store.mover import Moved
from spoold.store.task_location import ids_in
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import Kind, NotRegularError

Move = Callable[[str, str], Moved]

CAUSE_MAX = 100
_LEGAL_ELSEWHERE = frozenset(':*?"<>|\\')


def reject(
    desk: Desk,
    path: str,
    drop: str,
    error: BadFile,
    *,
    data: bytes = b"",
    size: int | None = None,
    unfinished: bool = False,
    watched: bool = False,
    admitted: int = 0,
    move: Move | None = None,
) -> bool:
    """Move the file at `path` into rejected/ under the drop's name, or one like it; True when it is there.

    Errors: OSError. size in bytes, where it is not that of the data; unfinished: it may yet become a task; watched:
    so may later content of the same file; admitted: so many of its first bytes are tasks; move: the function for
    entries that are in no table of moves.
    """
    fs = desk.store.fs
    taken = desk.rejects.taken
    if taken is None:
        taken = desk.rejects.see(existence.names_unless_blocked(fs, layout.REJECTED))
    name = _free_name(desk, drop, taken)
    said = Content(len(data), digest_of(data)[:IN_REASON]) if size is None else Content(size)
    reason = {
        "drop": legible(drop),
        "id": _claimed_id(data[admitted:]),
        "at": desk.store.stamp(),
        "file": error.file,
        "field": error.field,
        "problem": error.problem,
        "mend": error.mend,
        "size": said.size,
        **({"digest": said.digest.hex()} if said.digest and (watched or unfinished) else {}),
        **({"admitted": admitted} if admitted else {}),
        **({"unfinished": True} if unfinished else {}),
        **({"ids": ids_in(data[admitted:])} if drop.lower().endswith(".jsonl") else {}),
    }
    beside = layout.join(layout.REJECTED, f"{name}{layout.REASON}")
    try:
        desk.store.publish(beside, codec.dump(reason), durable=desk.store.durable)
    except NotADirectoryError as trouble:
        desk.tell(beside, trouble)
        return False
    moved = (move or partial(desk.store.move, Mover.LEADER, "REJECTED"))(path, layout.join(layout.REJECTED, name))
    if not desk.went(moved, legible(drop)):
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(beside)
        return False
    desk.rejects.came(name, f"{name}{layout.REASON}")
    desk.report.rejected_one(_cause(error))
    if watched or unfinished:
        said.open_ended = admitted > 0
        desk.rejects.watch(name, said)
    desk.journal.note("REJECTED", drop=reason["drop"], problem=f"{error.field}: {error.problem}", mend=error.mend)
    return True


def reject_twin(desk: Desk, path: str, task_id: str) -> bool:
    """Set a second token of a task aside, which only a copy made by hand can create; True when it is set aside."""
    file = path.rpartition("/")[2]
    return reject(desk, path, file, admission.taken(file, task_id), data=orjson.dumps({"id": task_id}))


def reject_directory(desk: Desk, path: str) -> bool:
    """Set a directory aside that is where only files belong: its content is not ours to remove.

    True when it is set aside. Errors: OSError.
    """
    return _set_aside(desk, path, "dir", BadFile(path, "", "is a directory.", "keep its content elsewhere."))


def reject_irregular(desk: Desk, path: str, drop: str) -> bool:
    """Set aside an entry in a door, in place of a drop, that is no regular file; True when it is gone from there.

    False also where a regular file is there by now. drop: the name for the reason. Errors: OSError.
    """
    try:
        kind = desk.store.fs.stat(path).kind
    except FileNotFoundError:
        return False
    refused = admission.judge_kind(drop, kind, 0, desk.store.settings)
    return isinstance(refused, Reject) and _set_aside(desk, path, kind, refused.error, drop)


def reject_file(desk: Desk, path: str) -> bool:
    """Set a file aside that is in the place of a directory: it belongs to a user, and is no link. Over SMB it may be
    a link for other clients (`mfsymlinks`). True when it is set aside. Errors: OSError.
    """
    return _set_aside(
        desk, path, "file", BadFile(path, "", "is a file in the place of a directory.", "keep it elsewhere.")
    )


def _set_aside(desk: Desk, path: str, kind: Kind, error: BadFile, drop: str = "") -> bool:
    try:
        if desk.store.fs.stat(path).kind != kind:
            return False
    except FileNotFoundError:
        return False
    refused: list[Moved] = []

    def move(src: str, dst: str) -> Moved:
        moved = mover.move(desk.store.fs, src, dst)
        refused.extend([] if moved else [moved])
        return moved

    if reject(desk, path, drop or path.rpartition("/")[2], error, move=move):
        return True
    return any(isinstance(moved.error, PermissionError) for moved in refused) and _leave_aside(desk, path)


def _leave_aside(desk: Desk, path: str) -> bool:
    """Give another user's directory that cannot be moved elsewhere a meaningless name; True when it has one."""
    if path.count("/") < 2 and path.startswith(f"{layout.ADMITTING}/"):
        return False  # a door is shut in its own way
    if path.endswith(ASIDE):
        return False  # it has such a name already
    try:
        desk.view.blocked.add(set_aside(desk.store, path))
    except OSError:
        return False
    desk.step.clear_denial()
    return True


def take_away(desk: Desk, path: str) -> bool:
    """Remove a file that is no longer needed; True when it is gone. Errors: OSError.

    A directory in its place is set aside. If neither is possible, a warning says so: it stops nothing else.
    """
    try:
        existence.remove(desk.store.fs, path)
    except OSError as error:
        if not concerns_one_file(error) or not reject_directory(desk, path):
            desk.tell(path, error)
            return False
    return True


def _cause(error: BadFile) -> str:
    """Return the fault without the faulty value: drops that fail alike have one cause."""
    return ": ".join(filter(None, (error.field, error.problem.partition(" Given:")[0])))[:CAUSE_MAX]


def _claimed_id(data: bytes) -> str | None:
    """Return the id that a rejected drop gave itself, so that `spool show` finds it."""
    try:
        value = codec.load(data, "")
    except BadFile:
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found[:200] if isinstance(found, str) else None


def _free_name(desk: Desk, drop: str, taken: set[str]) -> str:
    """Return the drop's own name where it is legal on every server and free; else one with a unique suffix."""
    legal = drop.isprintable() and drop.isascii() and _LEGAL_ELSEWHERE.isdisjoint(drop) and len(drop) <= 200
    if legal and not drop.endswith((".", " ")) and not {drop, f"{drop}{layout.REASON}"} & taken:
        return drop
    stem, dot, extension = drop.rpartition(".")
    suffix = admission.settle(drop, desk.next_micros(), desk.epoch)[0]
    return f"{slug(first_stem(stem) if dot else drop, 100)}.{suffix}.{slug(extension, 10) if dot else 'drop'}"


# Drops and tokens whose id belongs to a task already: an identical drop is a no-op, any other is refused.


def says_the_same(desk: Desk, task_id: str, new: Any, *, alone: bool = True) -> bool | None:
    """Whether the task with that id says the same as `new`, wherever the task is. Errors: OSError.

    None when it is moving just now. A damaged file counts as different: its content is unknown. alone: the new drop
    is removed if it says the same, so where a server may have forgotten the other one, a listing has to show it.
    """
    place = desk.view.place(key(task_id))
    path = find_archived(desk.store.fs, task_id) if place is None else place.path
    try:
        if path is None:
            return None
        with desk.faults.reading("file", path, task_id):
            with regular(path):
                data = desk.store.fs.read(path)
            same = codec.same_content(new, codec.load(data, path))
        doubtful = same and alone and desk.store.fs.forgets
        return None if doubtful and not existence.stands(desk.store.fs, path) else same
    except FileNotFoundError:
        return None
    except (BadFile, NotRegularError):
        return False
    except PermissionError as error:
        desk.tell(path or task_id, error)
        return None


def judge_duplicate(desk: Desk, drop: str, admit: Admit, new: Any) -> Known | Reject | None:
    """Judge a drop whose id is taken. None: the other task is moving just now, ask again. Errors: OSError."""
    told, task_id = len(desk.report.notices), admit.name.id
    same = says_the_same(desk, task_id, new)
    if same is None and desk.view.place(key(task_id)) is None:
        still_archived(desk.store.fs, task_id, desk.view.blocked)
    if same is None and (len(desk.report.notices) > told or layout.bucket(task_id) in desk.view.blocked):
        desk.step.deny()  # this user may not read the other one: no later step shows more
    return None if same is None else admission.judge_duplicate(drop, admit.name.id, same=same)


def has_completed(desk: Desk, task_id: str) -> bool:
    """Whether a task of this id has completed and was not sent back: any other token of it is a copy that a
    person restored, unless the server forgot the commit, so that is looked up. Errors: OSError.
    """
    place, ended = desk.view.place(key(task_id)), desk.view.archived.state(key(task_id))
    if place is not None and place.state is State.COMPLETED and existence.stands(desk.store.fs, place.path):
        return True
    return ended is State.COMPLETED and still_archived(desk.store.fs, task_id, desk.view.blocked)
