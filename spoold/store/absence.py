"""Whether a file is really gone, or only did not show itself.

An NFS client may believe for a while that a name is absent, and below an unmounted share nothing is found at all.
Before you forget a task, a claim or a writer because a file is missing, ask here.

Law: "not found" alone proves nothing. A name is gone when its directory does not list it, and a directory is gone
when its parent does not list it. Nothing is gone because one of the spool's own directories (`layout.TREE`) is
missing above it: that is an error. A root without the marker is no spool but the folder below an unmounted share.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from spoold.protocol import layout
from spoold.system.filesystem import FileSystem

_ALWAYS = frozenset(layout.TREE) - layout.LATER


def listed(fs: FileSystem, path: str) -> bool:
    """Whether the directory of a path lists its last part. Errors: OSError from listing."""
    directory, _, name = path.rpartition("/")
    names = fs.list(directory)
    if not directory and layout.MARKER not in names:
        raise FileNotFoundError(errno.ENOENT, "the share is not mounted: its root has no marker", layout.MARKER)
    return name in names


def stands(fs: FileSystem, path: str) -> bool:
    """Whether a name is there; False if its directory is gone. Errors: OSError, also if neither can be said."""
    try:
        return listed(fs, path)
    except FileNotFoundError:
        directory = path.rpartition("/")[0]
        if "/" not in directory or stands(fs, directory):
            raise
        return False


def names_in(fs: FileSystem, directory: str, blocked: set[str] | None = None, known: Iterable[str] = ()) -> list[str]:
    """All names in a lane, a claim directory or the like; none if the directory is gone. Errors: OSError.

    A link or a file in the place of a directory has no names either. blocked: collects such paths, for people, and
    each directory that this user may not list although its parent may be listed. The latter has the names in `known`,
    so that a name that was seen there before is not missed.
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
        if directory in _ALWAYS or stands(fs, directory):
            raise
        return []


def names_shown(fs: FileSystem, directory: str) -> list[str]:
    """As `names_in`, to show to people: a directory that this user may not list is empty."""
    return names_in(fs, directory, set())


def names_unless_blocked(fs: FileSystem, directory: str) -> list[str]:
    """All names in a directory that work can go on without: a link or a file in its place counts as empty, and
    `obstacles` reports it. Errors: OSError, also if nothing is there.
    """
    try:
        return fs.list(directory)
    except NotADirectoryError:
        return []


def read(fs: FileSystem, path: str, limit: int | None = None, offset: int = 0) -> bytes | None:
    """A file's content from `offset` on, at most `limit` bytes of it; None if it is gone. Errors: OSError."""
    try:
        return fs.read(path, limit, offset=offset)
    except FileNotFoundError:
        if not stands(fs, path):
            return None
    return fs.read(path, limit, offset=offset)  # that listing has cleared the NFS client's wrong belief


def remove(fs: FileSystem, path: str) -> None:
    """Remove a file; no error if it is gone already. Errors: OSError."""
    try:
        fs.unlink(path)
    except FileNotFoundError:
        if stands(fs, path):
            raise
