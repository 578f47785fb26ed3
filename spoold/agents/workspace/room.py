"""Whether the disk of the workspaces is full, in words, with what frees it.

Law: a full disk is this machine's fault, and no task's. It is named where an error speaks of it, and before an agent
starts. An error of another cause stays what it is.

Touches: files.
"""

from __future__ import annotations

import errno
import os
import re

from spoold.protocol.errors import SpoolError

# With less room (bytes) than this no agent begins: its work could not be kept.
LEAST = 16 << 20
_FULL = re.compile(r"no space left|disk quota exceeded|errno (?:28|122)\b", re.IGNORECASE)


class NoRoom(SpoolError):
    """The disk of the workspaces is full; the words name it, its room and the fix."""


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
    fix = "free some room there, or set `dir` of the workspaces to a folder on a larger disk"
    return f"the disk of {top} is full: {left}. Fix: {fix}; `spool workspace ls` shows what lies there."


def fault_of(error: BaseException, top: str) -> str:
    """Return in words that an error is due to a full disk; '' for any other. top: where workspaces lie, or ''."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not (full or isinstance(error, NoRoom) or _FULL.search(str(error))):
        return ""
    if isinstance(error, NoRoom):
        return str(error)
    return (short(top) if top else "") or (f"a disk of this machine is full: {error}" if full else "")
