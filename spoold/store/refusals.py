"""Why a move was refused, in a sentence for people: the file, the place and the fix.

Law: pure words about an error that has happened, and a look at what stands in the way. Paths are given whole, as this
node sees them: a path that is cut off cannot be fixed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from spoold.protocol import layout
from spoold.store.mover import Moved
from spoold.store.obstacles import obstacle
from spoold.system.filesystem import FileSystem

REFUSED = "cannot be moved"
# Part of a leader's warning about a batch that it cannot read: the batch may promise ids.
WAITED_FOR = "until then a drop that names"


def refusal(fs: FileSystem, what: str, moved: Moved) -> str:
    """Why `what` could not be moved. Never raises OSError."""
    error, src, dst = moved.error, moved.src, moved.dst
    if isinstance(error, NotADirectoryError):
        for directory in (src.rpartition("/")[0], dst.rpartition("/")[0]):
            if directory and (found := obstacle(fs, directory)) is not None:
                return f"{what} {REFUSED} from {src}: {found}"
    if isinstance(error, PermissionError):
        return f"{what} {REFUSED}: {denied(fs, error, src, dst)}"
    reason = (error.strerror or str(error)) if error is not None else str(moved.fate)
    return f"{what} {REFUSED} from {src} to {dst}: {reason}"


def refused_of(task_id: str, path: str, warnings: Iterable[str]) -> str:
    """The leader's warning about a task that it could not move from there; '' if there is none.

    From claimed/ a leader moves only the claims of a dead worker.
    """
    return next((said for said in warnings if said.startswith(f"task {task_id} {REFUSED}") and path in said), "")


def denied(fs: FileSystem, error: OSError, src: str, dst: str) -> str:
    """Name the directories that must be writable. On a spool of several users the cause is mostly a node's umask.

    A directory that moves must be writable itself, since its `..` changes. Never raises OSError.
    """
    root = _root(error, src)
    with contextlib.suppress(OSError):
        if fs.stat(src).shut:
            path = f"{root}{src}"
            said = f"{path} is a directory of another user, and this node's user may not write to it"
            return f"{said} ({error.strerror}); its owner (or root) removes it, or runs `chmod g+rwx {path}`"
    directory, target = (f"{root}{path.rpartition('/')[0]}" for path in (src, dst))
    said = f"this node's user may not write to {directory} or {target} ({error.strerror}: {root}{src})"
    whose = f", started by the user who owns {directory}" if src.startswith(f"{layout.CLAIMED}/") else ""
    fix = f"the owner of the directory (or root) runs `chmod g+rwx {directory}`"
    return f"{said}; {fix}, and a node{whose}, gets `umask 002` before it is started" if whose else f"{said}; {fix}"


def _root(error: OSError, src: str) -> str:
    """The spool's directory with a slash at its end, if the error names the whole path; else ''."""
    name = error.filename if isinstance(error.filename, str) else ""
    return name.removesuffix(src) if name.endswith(src) else ""
