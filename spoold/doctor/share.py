"""The doctor's port: the file-system port, and calls that it leaves out because spoold must not rely on them.

Law: as for the file-system port; each file is closed before a verb returns, except in `holding` and `locked`.

Touches: files, processes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from spoold.system.beneath import Beneath
from spoold.system.posix import PosixFileSystem
from spoold.system.renaming import rename_plainly

T = TypeVar("T")
LockKind = Literal["flock", "ofd"]
_WARY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_RENAME_NOREPLACE = 1
_AT_FDCWD = -100
_RENAMEAT2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class Share(PosixFileSystem):
    """The directory under examination. calls: the number of calls so far; on a hung share it stands still."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.calls = 0

        self._beneath = _Counted(self)

    def list(self, path: str) -> list[str]:
        """List a directory as the mount shows it: a trial must not touch it before."""
        self.calls += 1
        return self._names(path)

    def rename(self, src: str, dst: str) -> None:
        """Call plain rename(2): a trial must see its effect on an existing name."""
        self._beneath.between(src, dst, rename_plainly)

    def create_exclusive(self, path: str) -> None:
        """Make an empty file with O_EXCL. Errors: FileExistsError when the name is there, OSError."""
        os.close(self._open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))

    def rename_noreplace(self, src: str, dst: str) -> None:
        """Call renameat2(RENAME_NOREPLACE). Errors: OSError, with ENOSYS where the system has no such call."""
        if _RENAMEAT2 is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), src)
        self._beneath.between(src, dst, _rename_noreplace)

    def sees(self, path: str) -> bool:
        """Return whether stat finds the name; network file systems answer this from their cache."""
        try:
            self._beneath.at(path, lambda name, above: os.stat(name, dir_fd=above, follow_symlinks=False))
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """Hold the file open for reading. Errors: OSError."""
        fd = self._open(path, os.O_RDONLY | _WARY)
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def locked(self, path: str, kind: LockKind = "flock") -> Iterator[bool]:
        """Try an exclusive lock on an existing file, without a wait; yield whether it is granted. Errors: OSError."""
        fd = self._open(path, os.O_RDWR | _WARY)
        try:
            yield _lock(fd, kind)
        finally:
            os.close(fd)  # this releases the lock

    def mode(self, path: str) -> tuple[int, int]:
        """Return permission bits and owner of a file or directory."""
        status = self._beneath.at(path, lambda name, above: os.stat(name, dir_fd=above, follow_symlinks=False))
        return status.st_mode & 0o7777, status.st_uid

    def writable(self, path: str) -> bool:
        """Return whether this user may make files in the directory, by the server's answer."""
        return self._beneath.at(path, lambda name, above: os.access(name, os.W_OK | os.X_OK, dir_fd=above))


class _Counted(Beneath):
    """Calls below the directory under examination, each of which is counted."""

    def __init__(self, share: Share) -> None:
        super().__init__(share.root)
        self._share = share

    def at(self, path: str, act: Callable[[str, int | None], T]) -> T:
        self._share.calls += 1
        return super().at(path, act)

    def between(self, src: str, dst: str, act: Callable[[str, str, int | None, int | None], T]) -> T:
        self._share.calls += 1
        return super().between(src, dst, act)


def _rename_noreplace(src: str, dst: str, giver: int | None, taker: int | None) -> None:
    assert _RENAMEAT2 is not None
    places = (_AT_FDCWD if giver is None else giver, os.fsencode(src), _AT_FDCWD if taker is None else taker)
    if _RENAMEAT2(*places, os.fsencode(dst), _RENAME_NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), src)


def _lock(fd: int, kind: LockKind) -> bool:
    try:
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            # struct flock of 64-bit Linux; an open-file-description lock excludes also within one process.
            whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, whole_file)
    except OSError as error:
        # EAGAIN, and on SMB EACCES: another holder has the lock.
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def name_of(error: OSError) -> str:
    """Return an error's name for the figures, such as ENOLCK."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))
