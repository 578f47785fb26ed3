"""What stands in the way of a move: links and files in the place of a directory; and why a move was refused, in
words.

Law: a look for people's sake, after something failed. Nothing that is found is followed. Only a link that stands in
the place of a directory which is to be removed anyway is removed, as the link that it is. Paths are given whole, as
this node sees them: a path that is cut off cannot be fixed.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable

from spoold.protocol import layout
from spoold.store.mover import Moved
from spoold.system.filesystem import FileSystem, Kind

# Errors of writing into a link, a pipe without a reader, a file that has another name, or a directory.
_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EMLINK, errno.EISDIR)
NAMED_MOST = 5
_KINDS: dict[Kind, str] = {"symlink": "a link", "file": "a file", "other": "a pipe, socket or device"}


def obstacle(fs: FileSystem, path: str) -> str | None:
    """The obstacle in the place of a directory, in a sentence that says how to fix it; None if there is none.

    The directories above it count, too. Never raises OSError.
    """
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        here = "/".join(parts[:end])
        with contextlib.suppress(OSError):
            kind = fs.stat(here).kind
            if kind != "dir":
                return _sentence(here, kind)
    return None


def behind(fs: FileSystem, error: OSError, root: str) -> str | None:
    """The obstacle that a failed call ran into; None if it ran into none. root: the names in the error begin with it.

    A rename fails with both its names, and mostly the directory of the second one is in question: the first is a file
    of the caller's own. Never raises OSError.
    """
    if not isinstance(error, NotADirectoryError):
        return None
    paths = [n.removeprefix(root).lstrip("/") for n in (error.filename2, error.filename) if isinstance(n, str)]
    above = [path.rpartition("/")[0] for path in paths]
    listed = paths if len(paths) == 1 else []
    return next((found for path in (*above, *listed) if path and (found := obstacle(fs, path)) is not None), None)


def obstacles(fs: FileSystem, directories: Iterable[str] = layout.TREE) -> list[str]:
    """The obstacles of several directories."""
    return [found for found in (obstacle(fs, directory) for directory in directories) if found is not None]


def barriers(fs: FileSystem, directories: Iterable[str]) -> list[str]:
    """The obstacles of directories below the layout's, and those of them that this user may not list."""
    return [found for path in directories if (found := barrier(fs, path)) is not None]


def named(sentences: list[str], what: str = "directories that this node's user may not list") -> list[str]:
    """The first few of these sentences, and the number of others: a member may make any number of directories."""
    more = len(sentences) - NAMED_MOST
    return sentences if more <= 0 else [*sentences[:NAMED_MOST], f"{what}, and that are not named here: {more:,}"]


def barrier(fs: FileSystem, path: str) -> str | None:
    """The obstacle of one directory, also if this user may not list it. Never raises OSError."""
    return obstacle(fs, path) or _closed(fs, path)


def _closed(fs: FileSystem, path: str) -> str | None:
    try:
        fs.list(path)
    except PermissionError:
        fix = f"its owner (or root) runs `chmod -R g+rwX {path}`, and sets `umask 002` for the program that made it"
        return (
            f"{path} belongs to another user, and this node's may not list it, so what is in it is passed over; {fix}"
        )
    except OSError:
        return None
    return None


def why_unwritten(fs: FileSystem, path: str, error: OSError) -> str:
    """Why a file could not be written, with the fix if something stands in its place. Never raises OSError."""
    if isinstance(error, NotADirectoryError) and (found := obstacle(fs, path.rpartition("/")[0])) is not None:
        return found
    if error.errno in _NO_FILE:
        return f"{path} is not a file that may be written ({error.strerror}); remove it"
    return error.strerror or str(error)


def remove_link(fs: FileSystem, path: str) -> bool:
    """Remove a link at this path; True if it is gone. Errors: OSError.

    If it has become a directory again meanwhile, unlink refuses.
    """
    if fs.stat(path).kind != "symlink":
        return False
    fs.unlink(path)
    return True


def _sentence(path: str, kind: Kind) -> str:
    what = _KINDS[kind]
    if kind != "symlink":
        again = f", and make the directory (`mkdir {path}`)" if path in layout.TREE else ""
        return f"{path} is {what} where a directory should be; move it out of the spool{again}"
    fix = f"remove the link (`rm {path}`)"
    if path in layout.TREE:
        fix = f"replace the link by a directory (`rm {path}; mkdir {path}`), with its files in it"
    return f"{path} is {what} where a directory should be, and no link below a spool is followed; {fix}"


# Why a move was refused, in a sentence for people: the file, the place and the fix.


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
