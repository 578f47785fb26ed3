"""The file-system port: the only way the rest of spoold touches a spool.

Thirteen verbs, because each one more is one more thing that must be right on NFS, on SMB, in memory and under
fault injection. Other verbs are missing on purpose. There is no `exists()`: on NFS a name once seen absent
stays absent for half a minute, and a name once seen present stays present after it has moved, so the answer
would be a rumour; list the directory instead. There is no `open()`: a handle outlives the truth, hides the
errors of `close`, and cannot be replayed; whole files in, whole files out. There is no `link`, no lock, no
exclusive create: rename is the one primitive that decides anything.

Law: of every implementation of the port:
* Paths are `str`, relative to the spool's root, separated by '/'; '' is the root itself. Empty, '.' and '..'
  components are a ValueError (and so are absolute paths), so that nothing above can leave the root by
  accident and each file has one spelling. Bytes of a name that are not UTF-8 travel as surrogate escapes and
  come back as the same bytes.
* Every failure is an `OSError` with the `errno` of POSIX; `errnos` has the meanings.
* No verb follows a link below the root, be it the last name or a directory on the way (ENOTDIR, as below a file):
  anyone who may write to the share may put one anywhere, at any moment. The root itself may be reached through links.
* Every verb works by path and keeps nothing open. A held directory descriptor never sees another NFS client's
  new names; opening a directory afresh does.
The contract suite of the tests holds them to it.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from dataclasses import dataclass
from stat import S_ISDIR, S_ISREG
from typing import Literal, Protocol, runtime_checkable

Kind = Literal["file", "dir", "symlink", "other"]


class DamagedError(PermissionError):
    """A file that repeatedly cannot be read although the share answers for all others, as on a damaged disk."""


class NotRegularError(OSError):
    """A read of an entry that is not a regular file: a directory, symlink, FIFO, socket or device. `errno` is EINVAL.

    A separate class, because SMB also raises EINVAL for a moment while a peer renames the file: that error is
    worth another look, this one is not.
    """

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(errno.EINVAL, f"not a regular file but {kind}", path)


def check_regular(path: str, mode: int) -> None:
    """Refuse an open file that is not regular. mode: from fstat(2). Errors: NotRegularError."""
    if not S_ISREG(mode):
        raise NotRegularError(path, "a directory" if S_ISDIR(mode) else "a FIFO or device")


# Negative counts, written without a sign, begin here.
_UNKNOWN = 1 << 63
_NO_COMPONENT = frozenset(("", ".", ".."))


def components(path: str) -> tuple[str, ...]:
    """The names along a path of the port; none for the root.

    Raises ValueError for a path that is absolute, climbs, or spells its file in a second way.
    """
    if not path:
        return ()
    parts = tuple(path.split("/"))
    if not _NO_COMPONENT.isdisjoint(parts):
        raise ValueError(f"not a path inside the spool: {path!r}")
    return parts


@dataclass(frozen=True, slots=True)
class Stat:
    """The result of `lstat`. `size` is in bytes, `mtime_ns` in nanoseconds since 1970 by the server's or client's
    clock.

    Only `kind` may decide anything: mtime and inode are neither identity nor lease across machines. `shut` is for
    people: a directory of another user, whose mode does not let this one write. `owner` is the user's number as this
    mount shows it, None where there are no owners.
    """

    kind: Kind
    size: int
    mtime_ns: int
    inode: int
    shut: bool = False
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Room on the file system that holds the root: bytes in all, bytes and inodes free to an ordinary user.

    `total_bytes` is 0 if the size is unknown; `free_bytes` then says nothing. `free_inodes` is None if the file
    system does not count them (btrfs, CephFS, many SMB servers). `read_only`: nothing can be written through this
    mount.
    """

    total_bytes: int
    free_bytes: int
    free_inodes: int | None
    read_only: bool = False


def usage_of(
    blocks: int, free_blocks: int, block_bytes: int, inodes: int, free_inodes: int, *, read_only: bool = False
) -> Usage:
    """The room that these figures of statvfs(3) tell of; free: to an ordinary user.

    A count above its total, or outside 0 to 2^63, stands for "unknown": CephFS answers -1 free inodes, others 2^64-1,
    or nothing but zeros.
    """
    sized = 0 < blocks < _UNKNOWN and 0 <= free_blocks <= blocks and block_bytes > 0
    counted = 0 < inodes < _UNKNOWN and 0 <= free_inodes <= inodes
    return Usage(
        total_bytes=blocks * block_bytes if sized else 0,
        free_bytes=free_blocks * block_bytes if sized else 0,
        free_inodes=free_inodes if counted else None,
        read_only=read_only,
    )


@runtime_checkable
class ReadsTogether(Protocol):
    """What a file system may do besides, where it saves time: read many small files of one directory at once."""

    def read_together(self, path: str, names: Collection[str]) -> dict[str, bytes]:
        """The contents of those files in a directory that can be read, by name; each as `FileSystem.read` has it. The
        path is walked once, so ask for a thousand at most. Errors: OSError, for the directory.
        """
        ...


class FileSystem(Protocol):
    """Thirteen verbs and `usage`. They raise OSError as POSIX would, ValueError for a path out of the root."""

    @property
    def remote(self) -> bool:
        """Whether a server holds the files. Then every look costs a round trip, and `flush` does not reach files that
        were closed before: they may be in the server's own cache, so each file has to be written durable.
        """
        ...

    @property
    def forgets(self) -> bool:
        """Whether a server that loses power may forget renames and removals that it has confirmed, while its clients
        live on. An SMB server may, for some seconds; an NFS server must not (RFC 1813, 4.8).
        """
        ...

    def list(self, path: str) -> list[str]:
        """Names in the directory, in no promised order. Opens the directory anew, so that the listing is
        fresh.
        """
        ...

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        """The content of a regular file from `offset` on, at most `limit` bytes of it.

        Without a limit: the most that a file may hold, batches and logs apart. JSON that is cut there is damaged.

        Never follows a symlink and never blocks on a FIFO; any entry that is not a regular file is
        `NotRegularError` (EINVAL), so a stranger's drop can neither hang a leader nor show it another file.
        """
        ...

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        """Create or truncate the file and write all of `data`; with `durable`, fsync it before close.

        An error may first show at fsync or at close, and only once; on any error the file is removed and the
        error raised, so that a later rename cannot publish half a file. `write` and `append` refuse a hard link as
        EMLINK, since its other name is another program's file.
        """
        ...

    def append(self, path: str, data: bytes) -> None:
        """Add `data` at the end of the file, creating it if need be. One writer per file: NFS appends do not
        mix. After an error the data already appended is taken back, if that is seen and possible.
        """
        ...

    def rename(self, src: str, dst: str) -> None:
        """rename(2). Replaces an existing file without a word, so destinations must be names that only the
        caller makes.

        On a server that `forgets`, raises FileExistsError for a destination that exists, or that this client believes
        in since it once made it: POSIX would report success there, and nothing would have happened.
        """
        ...

    def unlink(self, path: str) -> None:
        """Remove a name that is not a directory."""
        ...

    def mkdir(self, path: str) -> None:
        """Make one directory; its parent must be there."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory. ENOTEMPTY reliably means that it is not empty."""
        ...

    def stat(self, path: str) -> Stat:
        """lstat. May be stale on a network file system: for people and for kinds, never to discover or to
        decide.
        """
        ...

    def persist(self, path: str) -> None:
        """Make the content of a file durable that another process wrote and has closed.

        On NFS that asks nothing: content that another client can read is on the server, and its writer waited for the
        server's disk when it closed the file. Elsewhere the server, or the local disk, is asked. Errors as for
        `read`; PermissionError if only a handle that may write could ask, and none is granted.
        """
        ...

    def has_writer(self, path: str) -> bool | None:
        """Whether any process has the file open for writing. None if that is unknown: a server holds the file, it
        belongs to another user, or the file system cannot say. Errors as for `read`.
        """
        ...

    def sync(self, path: str) -> None:
        """Make the entries of a directory durable. A file system that cannot (EINVAL) raises no error."""
        ...

    def flush(self) -> None:
        """Make everything written through this client so far durable at once (syncfs): many files, one wait.

        Useful only if the files are not `remote`.
        """
        ...

    def usage(self) -> Usage:
        """Room on the file system that holds the root."""
        ...
