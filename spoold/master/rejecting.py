"""Putting aside what is no task: into rejected/, with the reason beside it.

The reason comes first, so no rejection is ever without one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import orjson

from spoold.master.desk import Desk
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.names import slug
from spoold.rules import admission
from spoold.store import absence, mover
from spoold.store.mover import Moved
from spoold.system.errnos import concerns_one_file

Move = Callable[[str, str], Moved]

_LEGAL_ELSEWHERE = frozenset(':*?"<>|\\')


def reject(
    desk: Desk,
    path: str,
    drop: str,
    error: BadFile,
    *,
    data: bytes = b"",
    size: int | None = None,
    move: Move | None = None,
) -> bool:
    """Move the file at `path` into rejected/ under the drop's name, or one like it; True when it is there.

    Errors: OSError. size in bytes, where it is not that of the data; move: how, for what is in no table of moves.
    """
    fs = desk.store.fs
    if desk.taken is None:
        desk.taken = set(fs.list(layout.REJECTED))
    name = _free_name(desk, drop, desk.taken)
    reason = {
        "drop": legible(drop),
        "id": _claimed_id(data),
        "at": desk.store.stamp(),
        "file": error.file,
        "field": error.field,
        "problem": error.problem,
        "mend": error.mend,
        "size": len(data) if size is None else size,
    }
    beside = layout.join(layout.REJECTED, f"{name}{layout.REASON}")
    desk.store.publish(beside, codec.dump(reason), durable=desk.store.durable)
    moved = (move or desk.store.move)(path, layout.join(layout.REJECTED, name))
    if not desk.went(moved, legible(drop)):
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(beside)
        return False
    desk.taken |= {name, f"{name}{layout.REASON}"}
    desk.rejected += 1
    desk.journal.note("REJECTED", drop=reason["drop"], problem=f"{error.field}: {error.problem}", mend=error.mend)
    return True


def reject_twin(desk: Desk, path: str, task_id: str) -> bool:
    """Set a second token of a task aside, which only a copy made by hand can have brought about; True when it is."""
    file = path.rpartition("/")[2]
    return reject(desk, path, file, admission.taken(file, task_id), data=orjson.dumps({"id": task_id}))


def reject_directory(desk: Desk, path: str) -> bool:
    """Set a directory aside that stands where only files are looked for: what is in it is not ours to remove.

    True when it is. Errors: OSError.
    """
    try:
        if desk.store.fs.stat(path).kind != "dir":
            return False
    except FileNotFoundError:
        return False
    error = BadFile(path, "", "is a directory.", "keep what is in it elsewhere.")
    return reject(desk, path, path.rpartition("/")[2], error, move=partial(mover.move, desk.store.fs))


def take_away(desk: Desk, path: str) -> bool:
    """Remove a file that is of no more use; True when it is gone. Errors: OSError.

    A directory in its place is set aside, and what can be neither is told: it stops nothing else.
    """
    try:
        absence.remove(desk.store.fs, path)
    except OSError as error:
        if not concerns_one_file(error) or not reject_directory(desk, path):
            desk.tell(path, error)
            return False
    return True


def _claimed_id(data: bytes) -> str | None:
    """The id that a rejected drop gave itself, so that `spool show` finds it."""
    try:
        value = codec.load(data, "")
    except BadFile:
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found[:200] if isinstance(found, str) else None


def _free_name(desk: Desk, drop: str, taken: set[str]) -> str:
    """The drop's own name where it is legal on every server and free; else one with a suffix of its own."""
    legal = drop.isprintable() and drop.isascii() and _LEGAL_ELSEWHERE.isdisjoint(drop) and len(drop) <= 200
    if legal and not drop.endswith((".", " ")) and not {drop, f"{drop}{layout.REASON}"} & taken:
        return drop
    stem, dot, extension = drop.rpartition(".")
    suffix = admission.settle(drop, desk.next_micros(), desk.epoch)[0]
    return f"{slug(stem if dot else drop, 100)}.{suffix}.{slug(extension, 10) if dot else 'drop'}"
