"""What is really not there, and what only did not show itself.

"Not found" alone proves nothing: an NFS client may believe for a while that a name is absent, and while a share is
not mounted nothing at all is found below it. A name is gone when its directory does not list it; a directory is gone
when the one above does not. The spool's own directories (`layout.TREE`) are never gone.

Whoever would forget a task, a claim or a writer because something is not there, asks here.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.system.filesystem import FileSystem


def listed(fs: FileSystem, path: str) -> bool:
    """Whether the directory of a path has that name in it, by a listing. Errors: OSError, as of the listing."""
    directory, _, name = path.rpartition("/")
    return name in fs.list(directory)


def stands(fs: FileSystem, path: str) -> bool:
    """Whether a name is there; not in a directory that is gone. Errors: OSError, also when neither can be said."""
    try:
        return listed(fs, path)
    except FileNotFoundError:
        directory = path.rpartition("/")[0]
        if "/" not in directory or stands(fs, directory):
            raise
        return False


def names_in(fs: FileSystem, directory: str, blocked: set[str] | None = None, known: Iterable[str] = ()) -> list[str]:
    """All names in a lane, a claim directory or the like; one that is gone is empty. Errors: OSError.

    So is what is no directory: somebody left a link or a file where only directories are looked for. blocked: keeps
    those, for people; and each directory that this user may not list, though the one above it may be listed. Such a
    one has the names that were `known` of it, so that nothing which was seen there is missed.
    """
    if blocked:
        blocked.discard(directory)
    try:
        return fs.list(directory)
    except NotADirectoryError:
        if blocked is not None:
            blocked.add(directory)
        return []
    except PermissionError:
        if blocked is None or not stands(fs, directory):
            raise
        blocked.add(directory)
        return list(known)
    except FileNotFoundError:
        if stands(fs, directory):
            raise
        return []


def names_shown(fs: FileSystem, directory: str) -> list[str]:
    """The same for people, who are shown what can be seen: a directory that this user may not list is empty."""
    return names_in(fs, directory, set())


def names_unless_blocked(fs: FileSystem, directory: str) -> list[str]:
    """All names in a directory without which work goes on: a link or a file in its place counts as empty, and is told
    by `obstacles`. Errors: OSError, also where nothing is there.
    """
    try:
        return fs.list(directory)
    except NotADirectoryError:
        return []


def read(fs: FileSystem, path: str, limit: int | None = None) -> bytes | None:
    """A file's content, at most `limit` bytes of it; None when it is gone. Errors: OSError."""
    try:
        return fs.read(path, limit)
    except FileNotFoundError:
        if not stands(fs, path):
            return None
    return fs.read(path, limit)  # that listing has cleared what an NFS client wrongly believed


def remove(fs: FileSystem, path: str) -> None:
    """Remove a file; one that is gone already is no error. Errors: OSError."""
    try:
        fs.unlink(path)
    except FileNotFoundError:
        if stands(fs, path):
            raise
