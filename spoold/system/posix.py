"""The file-system port and the lock port on a mounted directory, whatever serves it.

Law: every call walks its whole path anew, through directories and never through a link, and leaves nothing open; only
that is fresh on NFS, and safe where others may write. Every error of write, fsync and close is raised, since a full
server may report it only once. For a rename: an existing destination is refused (EEXIST) and never replaced; only a
rename that happened succeeds, on a server that may forget confirmed changes, too. For the lock: it is held for one
change of names and never over work, and every wait for it is bounded. It is the kernel's lock or none: a lock that is
a file's mere existence outlives its holder, and that cannot be noticed. The file must exist: making it here would put
one on the empty mount point of an unmounted share.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Protocol

from spoold.system.filesystem import Kind, NotRegularError, Stat, Usage, check_regular, components, usage_of
from spoold.system.mounts import Ground
from spoold.system.openat import LISTED, STEP, Beneath, unless_stale
from spoold.system.permissions import Sharing, is_shut

# statx(2) with AT_STATX_FORCE_SYNC: has the client ask its server about a name, whatever the client believes.
#
# Nothing is opened, changed or returned; the server's answer goes into the client's own cache. Without statx in the C
# library nothing is asked.


_AT_SYMLINK_NOFOLLOW, _AT_STATX_FORCE_SYNC = 0x100, 0x2000
# A request for the type alone is answered from memory: a type never changes (Linux, fs/nfs/inode.c, nfs_getattr).
_STATX_MODE, _STATX_CTIME = 0x2, 0x80
_STATX_BYTES = 256

_STATX = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)


def ask_server(name: str, above: int | None = None, *, follow: bool = False) -> None:
    """Have the server asked. above: a descriptor of a relative name's directory. follow: follow a link at the end,
    too. Never raises OSError: the next call finds the server's answer.
    """
    if _STATX is not None:
        flags = _AT_STATX_FORCE_SYNC | (0 if follow else _AT_SYMLINK_NOFOLLOW)
        place = _AT_FDCWD if above is None else above
        _STATX(place, os.fsencode(name), flags, _STATX_MODE | _STATX_CTIME, ctypes.create_string_buffer(_STATX_BYTES))


# A stranger may put anything into a shared directory. NOFOLLOW keeps a symlink from showing us, or making us
# overwrite, another file; NONBLOCK keeps a FIFO from hanging us in open(2), and means nothing to a regular
# file.
_WARY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20
# Most bytes that a read without a limit takes: a member may put a file there that no memory holds.
WHOLE = 64 << 20
_Names = list[str]  # inside the class, `list` is the verb


# syncfs(2) makes one file system durable; without it, all of them must be made durable.
_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


class PosixFileSystem:
    """The spool under `root`, an existing directory. Safe for use by several threads."""

    def __init__(self, root: str | os.PathLike[str], private: Collection[str] = (), *, touches: bool = True) -> None:
        """private: directories right below the root that are made closed to others. touches: whether listings give
        polled directories new times on NFS.
        """
        self._touches = touches
        self.root = os.path.abspath(root)
        self._ground = ground = Ground(self.root)
        self._beneath = Beneath(self.root, Denials(self.root, lambda: ground.nfs).doubt)
        self._sharing = Sharing(self.root, self._beneath, ground, private)
        self.whole = WHOLE

    @property
    def remote(self) -> bool:
        return self._ground.remote

    @property
    def forgets(self) -> bool:
        return self._ground.forgets

    def list(self, path: str) -> list[str]:
        touching = self._ground.touching if self._touches else None
        if touching is None:
            return self._names(path)
        now = time.monotonic()
        if touching.due(path, now):
            with suppress(OSError):  # a reader without write permission sees changes later
                self._beneath.at(path, _touch)
        names = self._names(path)
        touching.after(path, now, names)
        return names

    def _names(self, path: str) -> _Names:
        return self._beneath.names(path) if path else os.listdir(self.root)

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        return unless_stale(lambda: self._read(path, limit, offset))

    def _read(self, path: str, limit: int | None, offset: int) -> bytes:
        fd = self._open_to_read(path)
        try:
            status = os.fstat(fd)
            check_regular(path, status.st_mode)
            if offset:
                os.lseek(fd, min(offset, sys.maxsize), os.SEEK_SET)
            return _read_all(fd, max(status.st_size - offset, 0), self.whole if limit is None else limit)
        finally:
            os.close(fd)

    def read_together(self, path: str, names: Collection[str]) -> dict[str, bytes]:
        flags, found = os.O_RDONLY | self._ground.unbuffered | _WARY, {}
        above = self._beneath.at(path, _open_step)
        try:
            for name in names:
                with suppress(OSError):
                    if (data := _read_regular(name, above, flags, self.whole)) is not None:
                        found[name] = data
        finally:
            os.close(above)
        return found

    def _open_to_read(self, path: str) -> int:
        unbuffered = self._ground.unbuffered
        try:
            return self._open_wary(path, os.O_RDONLY | unbuffered)
        except OSError as error:
            if error.errno != errno.EINVAL or not unbuffered or isinstance(error, NotRegularError):
                raise
            return self._open_wary(path, os.O_RDONLY)  # an entry without data of its own cannot be read unbuffered

    def _open_wary(self, path: str, flags: int) -> int:
        try:
            return self._open(path, flags | _WARY)
        except OSError as error:
            # NOFOLLOW refuses a symlink with ELOOP; a socket or an absent device refuses every open
            # with ENXIO.
            if error.errno == errno.ELOOP:
                raise NotRegularError(path, "a symlink") from error
            if error.errno == errno.ENXIO:
                raise NotRegularError(path, "a socket or device") from error
            raise

    def _open(self, path: str, flags: int) -> int:
        mode = self._sharing.way(path).file_mode if flags & os.O_CREAT else 0
        return self._beneath.at(path, lambda name, above: os.open(name, flags, mode, dir_fd=above))

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        fd = self._open(path, os.O_WRONLY | os.O_CREAT | _WARY)
        try:
            try:
                if self._own(fd, path):
                    os.ftruncate(fd, 0)
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                # Without fsync, NFS reports a full disk or a broken connection here.
                os.close(fd)
        except BaseException:
            with suppress(OSError):
                self.unlink(path)
            raise

    def _own(self, fd: int, path: str) -> int:
        """The size of a file that is to be written. Errors: NotRegularError; EMLINK for a file with another name:
        that name may be anywhere on this file system, and belongs to another program.
        """
        status = os.fstat(fd)
        check_regular(path, status.st_mode)
        if status.st_nlink > 1:
            raise OSError(errno.EMLINK, "is a hard link to a file that has another name, too", path)
        self._sharing.give_file(fd, status, path)
        return status.st_size

    def append(self, path: str, data: bytes) -> None:
        fd = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _WARY)
        try:
            before = self._own(fd, path)
            try:
                _write_all(fd, data)
            except OSError:
                # The next try would append the part that fitted on the full disk once more.
                with suppress(OSError):
                    os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)

    def rename(self, src: str, dst: str) -> None:
        if not src or not dst:
            raise OSError(errno.EBUSY, "the root of a spool cannot be renamed", src, None, dst)
        self._beneath.between(src, dst, rename_known if self.forgets else rename_plainly)

    def unlink(self, path: str) -> None:
        self._beneath.at(path, _unlink)

    def mkdir(self, path: str) -> None:
        mode = self._sharing.way(path).directory_mode
        self._beneath.at(path, lambda name, above: os.mkdir(name, mode, dir_fd=above))
        self._sharing.give_directory(path)

    def rmdir(self, path: str) -> None:
        if not path:
            raise OSError(errno.EBUSY, "the root of a spool cannot be removed", self.root)
        self._beneath.at(path, _rmdir)

    def stat(self, path: str) -> Stat:
        status = self._beneath.at(path, _lstat)
        kind, shut = _kind(status.st_mode), is_shut(status)
        return Stat(kind, status.st_size, status.st_mtime_ns, status.st_ino, shut, status.st_uid)

    def persist(self, path: str) -> None:
        if self._ground.nfs:
            return
        # A server flushes only through a writable handle (SMB), a disk through any.
        fd = self._open_wary(path, os.O_RDWR if self.remote else os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def has_writer(self, path: str) -> bool | None:
        if self.remote:
            return None
        fd = self._open_wary(path, os.O_RDONLY)
        try:
            return _is_written(fd)
        finally:
            os.close(fd)

    def sync(self, path: str) -> None:
        if self.remote:
            return  # a server has confirmed each entry; no call could ask it again
        fd = self._beneath.at(path, _open_listed) if path else os.open(self.root, LISTED & ~os.O_NOFOLLOW)
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
        return usage_of(
            figures.f_blocks,
            figures.f_bavail,
            figures.f_frsize or figures.f_bsize,
            figures.f_files,
            figures.f_favail,
            read_only=bool(figures.f_flag & os.ST_RDONLY),
        )


def only_looking(fs: PosixFileSystem) -> PosixFileSystem:
    """The same directory for who only looks: a listing leaves no trace, and may miss a change until the next."""
    looking = PosixFileSystem(fs.root, touches=False)
    looking.whole = fs.whole
    return looking


def _open_step(name: str, above: int | None) -> int:
    return os.open(name, STEP, dir_fd=above)


def _read_regular(name: str, above: int, flags: int, most: int) -> bytes | None:
    """The content of a regular file right in an open directory; None for any other entry. Errors: OSError."""
    if len(components(name)) != 1:
        return None
    fd = os.open(name, flags, dir_fd=above)
    try:
        status = os.fstat(fd)
        return _read_all(fd, status.st_size, most) if S_ISREG(status.st_mode) else None
    finally:
        os.close(fd)


def _open_listed(name: str, above: int | None) -> int:
    return os.open(name, LISTED, dir_fd=above)


def _touch(name: str, above: int | None) -> None:
    os.utime(name, dir_fd=above, follow_symlinks=False)


def _unlink(name: str, above: int | None) -> None:
    os.unlink(name, dir_fd=above)


def _rmdir(name: str, above: int | None) -> None:
    os.rmdir(name, dir_fd=above)


def _lstat(name: str, above: int | None) -> os.stat_result:
    return os.stat(name, dir_fd=above, follow_symlinks=False)


def _read_all(fd: int, size: int, left: int) -> bytes:
    """Read to the end or `left` bytes; `size` is a hint: one read(2) is enough for a file that is not growing."""
    chunks: list[bytes] = []
    want = min(left, size + 1)
    while want > 0:
        chunk = os.read(fd, want)
        chunks.append(chunk)
        if len(chunk) < want:
            break  # a short read is the end of a regular file: another call would be for nothing
        left -= len(chunk)
        want = min(left, _CHUNK)
    return b"".join(chunks)


def _write_all(fd: int, data: bytes) -> None:
    """write(2) may write less than it was given, mostly near a full disk; the next call then returns the error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _kind(mode: int) -> Kind:
    if S_ISREG(mode):
        return "file"
    if S_ISDIR(mode):
        return "dir"
    return "symlink" if S_ISLNK(mode) else "other"


# Permission denied on NFS: does the server say so now, or does the client remember it?


EVERY_S = 1.0
DIRECTORIES_MAX = 4096


class Denials:
    """The denials below `root`, an absolute path. nfs: whether that is on NFS now."""

    def __init__(
        self,
        root: str,
        nfs: Callable[[], bool],
        ask: Callable[..., None] = ask_server,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self._nfs, self._ask, self._now = root, nfs, ask, now
        self._asked: dict[str, float] = {}

    def doubt(self, path: str) -> bool:
        """Have the server asked about every directory on the way to `path`, also those above the root. Return True if
        that was done, so that the call is worth another try.
        """
        if not self._nfs():
            return False
        above, now = path.rpartition("/")[0], self._now()
        if now - self._asked.get(above, now - EVERY_S) < EVERY_S:
            return False
        if len(self._asked) >= DIRECTORIES_MAX:
            self._asked.clear()
        self._asked[above] = now
        parts = self._root.split("/")
        for end in range(1, len(parts) + 1):
            self._ask("/".join(parts[:end]) or "/", follow=True)
        with suppress(OSError):
            self._ask_below(components(above))
        return True

    def _ask_below(self, parts: tuple[str, ...]) -> None:
        here = os.open(self._root, STEP & ~os.O_NOFOLLOW)
        try:
            for part in parts:
                self._ask(part, here)
                below = os.open(part, STEP, dir_fd=here)
                os.close(here)
                here = below
        finally:
            os.close(here)


# rename(2) on a server that may forget confirmed changes: only a rename that happened succeeds.
#
# An SMB client keeps the entry of every name that it has made. When a server loses power and with it a rename, the
# file has its old name again, and the client believes in both names of one file. POSIX calls a rename from one to the
# other done, and nothing happens at the server. As long as the file is looked at, that belief stays fresh (measured:
# after 2.5 s without a look, too). With RENAME_NOREPLACE the kernel refuses a name that it believes in, without
# another request. Then the server is asked about that name, which drops the belief, and the rename is made.


_AT_FDCWD = -100
_RENAME_NOREPLACE = 1

_RENAMEAT2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def rename_plainly(src: str, dst: str, giver: int | None = None, taker: int | None = None) -> None:
    """rename(2). giver, taker: as for `rename_known`. Errors: OSError."""
    os.rename(src, dst, src_dir_fd=giver, dst_dir_fd=taker)


def rename_known(src: str, dst: str, giver: int | None = None, taker: int | None = None) -> None:
    """Rename, unless dst exists; rename(2) if the file system cannot make that difference.

    giver, taker: descriptors of the directories of the names. Errors: OSError; FileExistsError if dst exists, or is
    still believed to.
    """
    try:
        _rename_noreplace(src, dst, giver, taker)
    except FileExistsError:
        if _there(dst, taker):
            raise
        _rename_noreplace(src, dst, giver, taker)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        rename_plainly(src, dst, giver, taker)


def _rename_noreplace(src: str, dst: str, giver: int | None, taker: int | None) -> None:
    if _RENAMEAT2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), src)
    place, other = (_AT_FDCWD if above is None else above for above in (giver, taker))
    if _RENAMEAT2(place, os.fsencode(src), other, os.fsencode(dst), _RENAME_NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), src, None, dst)


def _there(name: str, above: int | None) -> bool:
    """Whether the server has that name. Errors: OSError.

    The server answers the first question, but the client's entry stays as it is. After that the entry counts as old,
    so the second question drops it if the server does not know the name (measured, Linux 6.1).
    """
    ask_server(name, above)
    try:
        os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# The lock port, for spools on file systems whose rename is not exclusive: one holder at a time, on all machines.


# The first retry comes about as late as one change of names takes on a local disk. At the longest pause a waiter
# tries 50 to 100 times a second, which over a network is as many round trips and next to no CPU.
FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.02

# Errors of open and flock if the mount has no locks, for now (a server short of them) or for good.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


class Lock(Protocol):
    """Mutual exclusion between all processes that have the same spool mounted, and between their threads."""

    def held(self, wait_s: float) -> AbstractContextManager[None]:
        """Hold the lock inside the `with`; never twice on one thread. It ends with its holder's process.

        Errors, all before the body begins: OSError EAGAIN if others held it for the `wait_s` seconds of the wait
        (0: one try); one of NO_LOCKS if the mount has none; any error of opening a file on a share.
        """
        ...


class FileLock:
    """The kernel's lock (flock) on a file of the share, taken through filelock's `lock_descriptor`.

    It does not use filelock's class of the same name: that class makes a missing file and the directories above it,
    and opens the file anew for each try. Neither falls back to a soft lock here.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        import random

        from filelock import unlock_descriptor

        until, pause_s = time.monotonic() + wait_s, FIRST_PAUSE_S
        fd = self._open()
        try:
            while not self._taken(fd):
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise OSError(errno.EAGAIN, f"others held the lock for {wait_s:g} s", self._path)
                # Jitter, so that waiters do not try in step.
                time.sleep(min(pause_s * random.uniform(0.5, 1.0), left_s))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            try:
                if not os.fstat(fd).st_nlink:
                    # A new file of this name is another lock: this one excludes no node any more.
                    raise OSError(errno.EAGAIN, "the lock file was removed meanwhile", self._path)
                yield
            finally:
                # Not by closing alone: a process that was forked meanwhile would keep it.
                unlock_descriptor(fd)
        finally:
            os.close(fd)

    def _taken(self, fd: int) -> bool:
        # Not at the top: the import takes longer than most commands, and most spools do not need it.
        from filelock import lock_descriptor

        try:
            return lock_descriptor(fd, blocking=False)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            said = f"{error.strerror}: the mount gives no lock, and this spool claims by lock; run `spool doctor`"
            raise OSError(error.errno, said, self._path) from error

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            # Not as ENOENT: for a rename that would mean that another node was quicker.
            mend = "stop all nodes and make it again, as an empty file"
            raise OSError(errno.ENOLCK, f"the lock file is missing; {mend}", self._path) from error


# Whether any process has a file open for writing: the kernel says so of local files, by refusing a lease. A file that
# an NFS server writes for its clients is no process's open file: NFS 3 has no word for opening and closing. So on a
# machine that serves NFS, a "no" proves nothing. (A Samba server opens files as clients do.)


# The counters of the kernel's NFS server; the line `th` begins with its threads. Missing if it was never started.
SERVER = Path("/proc/net/rpc/nfsd")


def _is_written(fd: int) -> bool | None:
    """Whether any process has the file open for writing, which is open here for reading. None if that is unknown: it
    belongs to another user, the file system or the system has no leases, or this machine serves NFS.
    """
    if sys.platform != "linux":
        return None
    try:
        # A read lease is granted only while no process has the file open for writing. A writer that comes meanwhile
        # waits for that moment, and the signal of it must not be SIGIO, which would end this process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    return None if _serves_nfs() else False


def _serves_nfs() -> bool:
    """Whether this machine's kernel serves NFS to any client, be it this directory or another one. True in doubt."""
    try:
        lines = SERVER.read_text("ascii").splitlines()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return any(words[:1] == ["th"] and words[1:2] != ["0"] for words in map(str.split, lines))
