"""Whether the disk of the workspaces is full, in words, with what frees it; and room for what must be written then.

Law: a full disk is this machine's fault, and no task's. It is named where an error speaks of it, and before an agent
starts. An error of another cause stays what it is. That an agent has ended, and what it cost, is written also on a
disk that it has filled: room for that is taken before it starts.

Touches: files.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress

from spoold.agents.workspace.git import WorkspaceFailed

# With less room (bytes) than this no agent begins: its work could not be kept.
LEAST = 16 << 20
# So much (bytes) is kept for each of the next contents of a file, under its name with these endings; a text of so
# many characters fits there with all that stands beside it.
KEPT, TEXT_KEPT = 256 << 10, 16 << 10
_SPARES = (".new", ".next")
_FIX = (
    "Fix: free some room there, or set `dir` of the workspaces to a folder on a larger disk; `spool workspace ls` "
    "shows what lies there."
)
_FULL = re.compile(r"no space left|disk quota exceeded|errno (?:28|122)\b", re.IGNORECASE)


class NoRoom(WorkspaceFailed):
    """The disk of the workspaces is full, or has too little room; the words name it and the fix."""


def keep(path: str) -> None:
    """Keep room on the disk for the next two contents of a file, as far as there is some. Never raises OSError."""
    for ending in _SPARES:
        with suppress(OSError), open(f"{path}{ending}", "ab") as spare:
            os.posix_fallocate(spare.fileno(), 0, KEPT)


def let_go(path: str) -> None:
    """Give up the room that was kept for a file. Never raises OSError."""
    for ending in _SPARES:
        with suppress(OSError):
            os.unlink(f"{path}{ending}")


def replace(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file whole, with the room that was kept for it. durable: before this returns. Errors: OSError."""
    spares = [spare for ending in _SPARES if os.path.exists(spare := f"{path}{ending}")]
    spare = spares[0] if spares else f"{path}{_SPARES[0]}"
    # Not emptied first: its room would be anybody's.
    with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        file.truncate()
        if durable:
            os.fsync(file.fileno())
    os.replace(spare, path)


def short(top: str) -> str:
    """Return in words that the disk with this folder, which may not be there yet, is full; '' where it is not."""
    place = top
    while not os.path.exists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    try:
        disk = os.statvfs(place)
    except OSError:
        return ""
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    if size and free < LEAST:
        left = f"{free / (1 << 20):,.1f} of {size / (1 << 20):,.0f} MiB are free"
    elif disk.f_files and not disk.f_favail:
        left = "it can hold no more files"
    else:
        return ""
    return f"the disk of {top} is full: {left}. {_FIX}"


def no_room(top: str, why: str) -> NoRoom:
    """Return the error of a program that found no room on the disk with this folder. why: what failed, in words."""
    return NoRoom(short(top) or f"the disk of {top} has too little room: {why}. {_FIX}")


def is_full(error: BaseException) -> bool:
    """Whether an error of a program that reaches no remote is due to a full disk."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or isinstance(error, NoRoom) or bool(_FULL.search(str(error)))


def fault_of(error: BaseException, top: str) -> str:
    """Return in words that an error is due to a full disk; '' for any other. top: where workspaces lie, or ''."""
    if not is_full(error):
        return ""
    if isinstance(error, NoRoom):
        return str(error)
    sure = isinstance(error, OSError)
    return (short(top) if top else "") or (f"a disk of this machine is full: {error}" if sure else "")
