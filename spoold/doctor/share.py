"""The doctor's port: the file-system port, and what that leaves out on purpose because spoold must not rely on it.

Law: as of the file-system port; what is opened is closed before a verb returns, but for handles that are asked for.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from spoold.system.posix import PosixFileSystem

LockKind = Literal["flock", "ofd"]
_RENAME_NOREPLACE = 1
_AT_FDCWD = -100
_RENAMEAT2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class Share(PosixFileSystem):
    """The directory under examination. calls: how many were made, which tells a slow share from a hung one."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.calls = 0

    def _full(self, path: str) -> str:
        self.calls += 1
        return super()._full(path)

    def list(self, path: str) -> list[str]:
        """As the mount shows it: a trial must not touch what it lists."""
        return os.listdir(self._full(path))

    def create_exclusive(self, path: str) -> None:
        """Make an empty file that must not be there. Errors: FileExistsError when it is, OSError."""
        os.close(os.open(self._full(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))

    def rename_noreplace(self, src: str, dst: str) -> None:
        """renameat2(RENAME_NOREPLACE). Errors: OSError, with ENOSYS where the system has no such call."""
        if _RENAMEAT2 is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), src)
        names = (os.fsencode(self._full(src)), os.fsencode(self._full(dst)))
        if _RENAMEAT2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), src)

    def sees(self, path: str) -> bool:
        """Whether stat finds the name: the very question that network file systems answer from memory."""
        try:
            os.stat(self._full(path))
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """The file, held open for reading meanwhile. Errors: OSError."""
        fd = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def locked(self, path: str, kind: LockKind = "flock") -> Iterator[bool]:
        """An exclusive lock on an existing file, without waiting: whether it was granted. Errors: OSError."""
        fd = os.open(self._full(path), os.O_RDWR | os.O_CLOEXEC)
        try:
            yield _lock(fd, kind)
        finally:
            os.close(fd)  # and with it the lock goes

    def mode(self, path: str) -> tuple[int, int]:
        """Permission bits and owner of a file or directory."""
        status = os.lstat(self._full(path))
        return status.st_mode & 0o7777, status.st_uid

    def writable(self, path: str) -> bool:
        """Whether this user may make files in the directory, as the server tells."""
        return os.access(self._full(path), os.W_OK | os.X_OK)


def _lock(fd: int, kind: LockKind) -> bool:
    try:
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            # struct flock of 64-bit Linux; an open-file-description lock excludes also within one process.
            whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, whole_file)
    except OSError as error:
        # What is held by another says EAGAIN, and on SMB EACCES.
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def name_of(error: OSError) -> str:
    """An error as figures tell it: ENOLCK."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))
