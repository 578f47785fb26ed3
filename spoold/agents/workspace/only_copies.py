"""Which workspaces hold work that is on no remote, as notes that the worker shows to people.

    unsaved/NAME          a link to the note of a workspace: ../work/NAME/only-copy
    work/NAME/only-copy   the note: the spool of its task, and a sentence

Law: a note is there before an agent begins, so a kill at any moment leaves it; the attempt holds its lock meanwhile,
and the worker shows no note that is locked. It is gone once the remote has the work, and it goes with the folder. A
note that cannot be written is in the way of no work.

Touches: files.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from contextlib import suppress

from spoold.agents.workspace import room, secret_scan
from spoold.agents.workspace.workspace_layout import Places, Record

NOTE = "only-copy"


def hold(where: Places, folder: str, record: Record) -> int | None:
    """Make the note of a workspace in which an agent is about to begin; returns the descriptor that keeps it from
    being shown, None where it could not be made. Errors: none."""
    with suppress(OSError):
        held = os.open(os.path.join(folder, NOTE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)  # its reader lets go at once
        os.pwrite(held, _note(where, folder, record), 0)
        _link(where, folder)
        return held
    return None


def tell(where: Places, folder: str, record: Record, *, lacking: bool = False) -> None:
    """Bring the note of a workspace up to date. lacking: whether something of it was found to be on no remote, beside
    what the record says. Errors: none."""
    if (record.saved or not record.worked) and not record.left_out and not lacking:
        forget(where, folder)
        return
    path, note = os.path.join(folder, NOTE), _note(where, folder, record)
    with suppress(OSError):
        if _content(path) != note:  # one that is locked stays locked
            room.replace(path, note)
        _link(where, folder)


def forget(where: Places, folder: str) -> None:
    """Remove the note of a workspace, which may be gone. Errors: none."""
    for path in (_link_of(where, folder), os.path.join(folder, NOTE)):
        with suppress(OSError):
            os.unlink(path)


def forget_gone(where: Places) -> None:
    """Remove the links to notes of workspaces that are gone. Errors: none."""
    with suppress(OSError):
        for entry in os.scandir(where.unsaved):
            if entry.is_symlink() and not os.path.exists(entry.path):
                os.unlink(entry.path)


def _note(where: Places, folder: str, record: Record) -> bytes:
    whose = f"{'some of ' if record.saved else ''}the work of {record.task} (attempt {record.attempt})"
    gc = shlex.join(["spool", "workspace", "gc", "--dir", where.top])
    then = f"`{gc}` there pushes it, or says why it cannot"
    if record.secrets and not record.saved:
        then = secret_scan.unknown(record.secrets, record.profile, record.task, folder)
    text = f"{whose} is on no remote, only in {folder}: {then}"
    spool = os.path.realpath(record.spool) if record.spool else ""
    return f"{spool}\n{text}\n".encode("utf-8", "surrogateescape")


def _link_of(where: Places, folder: str) -> str:
    return os.path.join(where.unsaved, os.path.basename(folder))


def _link(where: Places, folder: str) -> None:
    """Make the link to the note of a folder, where it is not there. Errors: OSError."""
    os.makedirs(where.unsaved, mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.symlink(os.path.relpath(os.path.join(folder, NOTE), where.unsaved), _link_of(where, folder))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
