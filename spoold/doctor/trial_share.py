"""The share under trial: the file-system port with calls that it leaves out because spoold must not rely on them; and
the places of a run: doctor/run.NODE/, and files called .doctor-NODE in the directories of the tree.

Law: as for the file-system port; each file is closed before a verb returns, except in `holding` and `locked`.
Everything is this run's own by name. A run is over when nothing in it has changed for one hour by the server's clock;
on a local disk, whose runs are all of this machine, also when its process is gone. On a share the process may run on
a twin of this machine. Only a run that is over has its files removed.

Touches: files, processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import orjson

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.store.own_heartbeat import host_id
from spoold.store.store import make_directory
from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone
from spoold.system.openat import Beneath
from spoold.system.posix import PosixFileSystem, rename_plainly

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


# The places of trials: doctor/run.NODE/, and files called .doctor-NODE in the directories of the tree.


ABANDONED_S = 3600.0
RUN, GROUP, HERE = "run.", "group.", "here."
HOPPING = ".doctor-"
_WHO = "who.json"


class Unfit(ValueError):
    """A spool cannot be made there: a sentence without the path, and the fix."""


def make_places(directory: str) -> None:
    """Make the directory that is to become a spool, and those above it. Errors: Unfit, before anything is made."""
    parent = os.path.dirname(directory)
    # The outer spool would take the files of an inner one for tasks, and clear them by age.
    for above in _above(os.path.realpath(directory)):
        if os.path.lexists(os.path.join(above, layout.MARKER)):
            raise Unfit(f"lies in the spool {above} (which has {layout.MARKER}). Name a directory outside of it.")
    try:
        os.makedirs(directory, exist_ok=True)
    except FileExistsError:
        raise Unfit("is a file. Name a new or empty directory.") from None
    except NotADirectoryError:
        file = next(path for path in (parent, *_above(parent)) if os.path.lexists(path))
        raise Unfit(f"cannot be made, since {file} is a file. Name a directory that is not below a file.") from None
    except OSError as error:
        above = next(path for path in (parent, *_above(parent)) if os.path.isdir(path))
        why = f"cannot be made in {above}: {error.strerror}."
        raise Unfit(f"{why} Name a directory where `mkdir` works for you, such as ~/spool.") from None


def _above(path: str) -> Iterator[str]:
    """Yield the directories above a path, the nearest first."""
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def room(node: str) -> str:
    """The directory of a run."""
    return layout.join(layout.DOCTOR, f"{RUN}{node}")


@contextmanager
def opened(share: Share, node: str, host: Host) -> Iterator[str]:
    """Make this run's directory, and remove it with its content at the end. Removes the files of crashed runs first.

    Errors: OSError when it cannot be made; none when it cannot be removed.
    """
    present = layout.DOCTOR in share.list("")
    if not present:
        make_directory(share, layout.DOCTOR)
    place = room(node)
    try:
        make_directory(share, place)
        identity, process = host_id(host.identity()), host.process()
        who = {"host": identity.model_dump(), "pid": process.pid, "start": process.start_time}
        share.write(layout.join(place, _WHO), orjson.dumps(who), durable=False)
        clear_abandoned(share, node, host)
        yield place
    finally:
        clear_hops(share, lambda found: found == node)
        remove(share, place)
        if layout.MARKER not in _list(share, ""):
            # Nothing may stay in a directory that is not a spool, unless another run is in it.
            with contextlib.suppress(OSError):
                share.rmdir(layout.DOCTOR)


def clear_abandoned(share: Share, me: str, host: Host) -> None:
    """Remove the files of runs that are surely over. Never raises OSError: a peer may do the same at this moment."""
    probe = layout.join(room(me), _WHO)
    with contextlib.suppress(OSError):
        now_s = share.stat(probe).mtime_ns / 1e9
        for name in _list(share, layout.DOCTOR):
            path = layout.join(layout.DOCTOR, name)
            if not name.startswith(RUN) or name == f"{RUN}{me}":
                continue
            old = now_s - newest_s(share, path) > ABANDONED_S
            if old or (not share.remote and _is_gone(share, path, host)):
                remove(share, path)
        names = _list(share, layout.DOCTOR)
        live = {name.removeprefix(RUN) for name in names if name.startswith(RUN)}
        for name in names:
            if name.startswith((GROUP, HERE)) and name.split(".")[1] not in live:
                remove(share, layout.join(layout.DOCTOR, name))
        clear_hops(share, lambda found: found not in live)


def clear_hops(share: Share, theirs: Callable[[str], bool]) -> None:
    """Remove the .doctor-NODE files of the nodes that `theirs` accepts."""
    present = set(_list(share, ""))
    for directory in layout.TREE:
        for name in _list(share, directory) if directory in present else ():
            if name.startswith(HOPPING) and theirs(name.removeprefix(HOPPING)):
                with contextlib.suppress(OSError):
                    share.unlink(layout.join(directory, name))


def newest_s(share: Share, path: str) -> float:
    """Return the last change of a path or its direct entries (s since 1970, server's clock). Errors: OSError."""
    status = share.stat(path)
    newest = status.mtime_ns
    if status.kind == "dir":
        newest = max([newest, *(share.stat(layout.join(path, name)).mtime_ns for name in share.list(path))])
    return newest / 1e9


def remove(share: Share, path: str) -> None:
    """Remove a file, or a directory and all below it. Never raises OSError."""
    for _ in range(3):
        with contextlib.suppress(OSError):
            if share.stat(path).kind != "dir":
                share.unlink(path)
                return
            for name in share.list(path):
                remove(share, layout.join(path, name))
            share.rmdir(path)
            return


def _is_gone(share: Share, path: str, host: Host) -> bool:
    """Return whether a run's process was on this host and is gone. False in doubt."""
    try:
        who = codec.load_object(share.read(layout.join(path, _WHO)), _WHO)
        then = HostIdentity(**who["host"])
        return surely_gone(then, ProcessIdentity(who["pid"], who["start"]), host)
    except (BadFile, OSError, ValueError, KeyError, TypeError):
        return False


def _list(share: Share, path: str) -> list[str]:
    try:
        return share.list(path)
    except OSError:
        return []
