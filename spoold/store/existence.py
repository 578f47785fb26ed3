"""What is under a name: whether a file is really gone, or only did not show itself; and whether it is a regular file.

An NFS client may believe for a while that a name is absent, and below an unmounted share nothing is found at all.
Before you forget a task, a claim or a writer because a file is missing, ask here.

Law: "not found" alone proves nothing. A name is gone when its directory does not list it, and a directory is gone
when its parent does not list it. Nothing is gone because one of the spool's own directories (`layout.TREE`) is
missing above it: that is an error. A root without the marker is no spool but the folder below an unmounted share. A
file of the spool is a regular file; any other kind under its name is the fault of the person who put it there. Links
and the like are never followed on a share, and looking again does not turn one into a file.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.system.filesystem import FileSystem, NotRegularError

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
    `path_conflicts` reports it. Errors: OSError, also if nothing is there.
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


# A file of the spool is a regular file. Any other kind under its name is the fault of the person who put it there.


_MEND = "put a file in its place, since links and the like are never followed on a share."


@contextmanager
def regular(file: str) -> Iterator[None]:
    """Around a read: make an error of the share into a BadFile of this name if the entry is not a regular file."""
    try:
        yield
    except NotRegularError as error:
        raise BadFile(file, "", f"is {error.strerror}.", _MEND) from error


class Unreadable(BadFile):
    """A file that this user may not read."""


@contextmanager
def readable(file: str) -> Iterator[None]:
    """As `regular`, for a person: a file that this user may not read is a BadFile, too. Errors: Unreadable."""
    try:
        with regular(file):
            yield
    except PermissionError as error:
        mend = f"its owner (or root) lets the group read it (`chmod -R g+rwX {file}`), or moves it out of the spool."
        raise Unreadable(file, "", f"may not be read by this user ({error.strerror}).", mend) from error


def readable_again(error: OSError) -> str:
    """What a person does about a request that the leader cannot read: the last part of a sentence."""
    if isinstance(error, NotRegularError):
        return "remove it (rmdir, rm), since it can never be read"
    return "let the user that the master runs as read it (chmod, chown)"


class Contains(Protocol):
    """What contains the faults of one node (see `contained_faults`)."""

    def reading(
        self, kind: str, file: str, task: str | None = None, attempt: int | None = None
    ) -> AbstractContextManager[object]:
        """Read a file inside. Errors: BadFile, also for a fault of spoold."""


# The node whose step runs now. None in a command of a person, where a fault is loud.
NODE: ContextVar[Contains | None] = ContextVar("node", default=None)


def reading(
    kind: str, file: str, task: str | None = None, attempt: int | None = None
) -> AbstractContextManager[object]:
    """As `Faults.reading` of the node whose step runs now; outside of any step every exception passes."""
    node = NODE.get()
    return nullcontext() if node is None else node.reading(kind, file, task, attempt)
