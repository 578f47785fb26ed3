"""The file-system port on a mounted directory, whatever serves it.

Law: every call goes by full path and leaves nothing open, since only that is fresh on NFS; every error of
write, fsync and close is raised, since a full server may tell it only once. Touches `os` and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from contextlib import suppress
from functools import cached_property
from stat import S_ISDIR, S_ISLNK, S_ISREG

from spoold.system.filesystem import Kind, NotRegularError, Stat, Usage, components
from spoold.system.mounts import Mount, mount_of
from spoold.system.touching import Touching

# A stranger may put anything into a shared directory. NOFOLLOW keeps a symlink from showing us, or making us
# overwrite, another file; NONBLOCK keeps a FIFO from hanging us in open(2), and means nothing to a regular
# file.
_WARY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


# syncfs(2) makes one file system durable; without it, all of them have to be.
_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


class PosixFileSystem:
    """The spool under `root`, an existing directory. Safe for use by several threads."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(root)
        self._prefix = self.root.rstrip("/") + "/"

    def _full(self, path: str) -> str:
        components(path)
        return self._prefix + path

    @cached_property
    def mount(self) -> Mount | None:
        """What the spool lies on, looked up once; None where that cannot be told."""
        return mount_of(self.root)

    @property
    def remote(self) -> bool:
        return self.mount is None or self.mount.network

    @property
    def forgets(self) -> bool:
        return self.remote and (self.mount is None or not self.mount.nfs)

    @cached_property
    def _unbuffered(self) -> int:
        """The flag with which a file is opened that is read once.

        Linux asks an NFS 4.1 server for a delegation with every other open. Whoever then moves the file has it called
        back first: a round trip more for each reader, and a wait for who moves it.
        """
        nfs4 = self.mount is not None and self.mount.fstype == "nfs4"
        return os.O_DIRECT if nfs4 and sys.platform == "linux" else 0

    def list(self, path: str) -> list[str]:
        full = self._full(path)
        if self._touching is None:
            return os.listdir(full)
        now = time.monotonic()
        self._touching.before(full, now)
        names = os.listdir(full)
        self._touching.after(full, now, names)
        return names

    @cached_property
    def _touching(self) -> Touching | None:
        if self.mount is None or not self.mount.nfs:
            return None
        return Touching("vers=3" in self.mount.options)

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        fd = self._open_to_read(path)
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                raise NotRegularError(path, "a directory" if S_ISDIR(status.st_mode) else "a FIFO or device")
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            return _read_all(fd, max(status.st_size - offset, 0), limit)
        finally:
            os.close(fd)

    def _open_to_read(self, path: str) -> int:
        flags = os.O_RDONLY | _WARY
        try:
            try:
                return os.open(self._full(path), flags | self._unbuffered)
            except OSError as error:
                if error.errno != errno.EINVAL or not self._unbuffered:
                    raise
                return os.open(self._full(path), flags)  # what has no data of its own is never unbuffered
        except OSError as error:
            # ELOOP is how NOFOLLOW refuses a symlink, ENXIO how a socket or an absent device refuses
            # everybody.
            if error.errno == errno.ELOOP:
                raise NotRegularError(path, "a symlink") from error
            if error.errno == errno.ENXIO:
                raise NotRegularError(path, "a socket or device") from error
            raise

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        full = self._full(path)
        fd = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _WARY, 0o666)
        try:
            try:
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                # Without fsync this is where NFS tells of a full disk or a broken connection.
                os.close(fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(full)
            raise

    def append(self, path: str, data: bytes) -> None:
        fd = os.open(self._full(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _WARY, 0o666)
        try:
            before = os.fstat(fd).st_size
            try:
                _write_all(fd, data)
            except OSError:
                # What went in before the disk was full would come once more with the next try.
                with suppress(OSError):
                    os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)

    def rename(self, src: str, dst: str) -> None:
        if not src or not dst:
            raise OSError(errno.EBUSY, "the root of a spool cannot be renamed", src, None, dst)
        os.rename(self._full(src), self._full(dst))

    def unlink(self, path: str) -> None:
        os.unlink(self._full(path))

    def mkdir(self, path: str) -> None:
        os.mkdir(self._full(path))

    def rmdir(self, path: str) -> None:
        if not path:
            raise OSError(errno.EBUSY, "the root of a spool cannot be removed", self.root)
        os.rmdir(self._full(path))

    def stat(self, path: str) -> Stat:
        status = os.lstat(self._full(path))
        return Stat(_kind(status.st_mode), status.st_size, status.st_mtime_ns, status.st_ino)

    def sync(self, path: str) -> None:
        if self.remote:
            return  # a server has answered for every entry by itself; there is no call that would ask it again
        fd = os.open(self._full(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(fd)

    def flush(self) -> None:
        if _SYNCFS is None:
            os.sync()
            return
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _SYNCFS(fd):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), self.root)
        finally:
            os.close(fd)

    def usage(self) -> Usage:
        figures = os.statvfs(self.root)
        return Usage(
            total_bytes=figures.f_blocks * figures.f_frsize,
            free_bytes=figures.f_bavail * figures.f_frsize,
            free_inodes=figures.f_favail if figures.f_files else None,
        )


def _read_all(fd: int, size: int, limit: int | None) -> bytes:
    """Read to the end or to `limit`; `size` is a hint, for one read(2) to be enough for a file that is not
    growing.
    """
    chunks: list[bytes] = []
    left = sys.maxsize if limit is None else limit
    want = min(left, size + 1)
    while want > 0:
        chunk = os.read(fd, want)
        chunks.append(chunk)
        if len(chunk) < want:
            break  # less than was asked for is the end of a regular file: asking again would be a call for nothing
        left -= len(chunk)
        want = min(left, _CHUNK)
    return b"".join(chunks)


def _write_all(fd: int, data: bytes) -> None:
    """write(2) may take less than it was given, near a full disk above all; the next call then tells why."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _kind(mode: int) -> Kind:
    if S_ISREG(mode):
        return "file"
    if S_ISDIR(mode):
        return "dir"
    return "symlink" if S_ISLNK(mode) else "other"
