"""The scratch port: a worker's own local directory, one folder per attempt, gone when the attempt is committed.

Law: it is on a local disk and never on the share, since processes that write here must not hang with the share. No
call takes longer the more a task left: a folder with more than a few small files is only renamed, and a process of
its own removes it (`leftovers`). What is mounted in a folder is neither read nor changed. A
worker holds a lock on its own for as long as it lives, and the kernel alone says who is dead: no identity is asked.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from stat import S_IFDIR, S_IFLNK, S_IFMT, S_ISDIR, S_ISREG
from typing import Any, Protocol

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.system.cleaner import ENDED, RUBBISH, entries, mine
from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone
from spoold.system.leftovers import Leftovers, Remover
from spoold.system.remover import quoted, remove
from spoold.system.same_mount import LISTED, NAMED, PLACE, is_fixed, open_here

log = logging.getLogger("spoold")

_PREFIX = "spoold-scratch-"
_OWNER = "owner.json"
# Anyone may put a file of that name into a public directory; ours has some hundred bytes.
_OWNER_MAX = 1 << 16
WORK = "work"
DEPS = "deps"
TASK = "task.json"
_PARTS = (WORK, DEPS)
# The folder of loans, in which every task of the worker may write.
LOANS = "loans"
# So many entries, blocks (512 bytes) of a file and bytes of a directory are dealt with at once.
_AT_ONCE, _BLOCKS_MAX, _DIRECTORY_MAX = 16, 16_384, 1 << 16
# So many entries of the root are looked at in one step.
_LISTED_MAX = 1000
# What could not be renamed is tried again after so long (s); so many are told.
_MOVE_AGAIN_S, _TOLD_MAX = 60.0, 3
# A worker that leaves waits so long (s) for the removal of what its tasks left; the next worker removes the rest.
CLOSE_WITHIN_S = 5.0
_MODE = 0o700
_TICK_NS = 50_000_000
_KINDS = {S_IFDIR: "a directory", S_IFLNK: "a symbolic link"}
_WARY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Scratch(Protocol):
    """Folders by key; the key is a legal file name. Raises OSError as POSIX would."""

    def open(self, key: str) -> str:
        """The path of a folder with empty `work/` and `deps/` inside; the last attempt's `task.json` may be there."""
        ...

    def write(self, key: str, name: str, data: bytes) -> None:
        """Write a file inside the folder."""
        ...

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        """A part of a file inside the folder; empty if it is missing or cannot be read (`why_unread`)."""
        ...

    def why_unread(self, key: str, name: str) -> str | None:
        """What keeps `read` from a name, as "is a directory, ..."; None where nothing or a readable file is."""
        ...

    def close(self, key: str) -> None:
        """Have the folder removed with everything that a task left in it. Never raises, never waits."""
        ...

    def look(self) -> None:
        """Take in what became of it; part of every step. Never raises, never waits."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What of it could not be removed, and why, for people."""
        ...

    def remove(self) -> None:
        """Remove the whole scratch, within a few seconds as far as possible. Never raises."""
        ...


class LocalScratch:
    """Folders under a fresh private directory of the machine's temporary directory.

    A folder that an attempt left empty is used again: making and removing three directories for each attempt would
    cost more than everything else here. Any other is renamed, and another process removes it.
    """

    def __init__(self, worker: str, spool: str, host: Host, remover: Remover | None = None) -> None:
        """remover: removes what was renamed; by default a process of its own."""
        self._owner = {
            "worker": worker,
            "spool": spool,
            "host": asdict(host.identity()),
            "process": asdict(host.process()),
            "locked": True,
        }
        self._lock = -1
        self._remover = remover or Leftovers()
        self.root, self._at = self._make_root()
        self._folders: dict[str, _Folder] = {}
        self._clean: list[_Folder] = []
        self._unmoved: list[_Stuck] = []
        self._old: list[int] = []  # roots that were cleared away
        self._move_at = 0.0
        self._made = 0
        self._seen: int | None = None  # when the root last changed (ns), if nothing in it was left by a task then

    def open(self, key: str) -> str:
        self.close(key)
        folder = self._untouched() or self._make()
        folder.begin()
        self._folders[key] = folder
        return folder.path

    def _untouched(self) -> _Folder | None:
        """A folder that nothing has touched since it was left clean: programs that clear /tmp know no owner."""
        while self._clean:
            folder = self._clean.pop()
            if folder.stands():
                return folder
            self._set_aside(folder)
        return None

    def _make(self) -> _Folder:
        self._made += 1
        try:
            return _Folder(self.root, self._at, str(self._made))
        except FileExistsError:  # a task made it
            return _Folder(self.root, self._at, f"{self._made}-{secrets.token_hex(6)}")
        except FileNotFoundError:
            # The whole root was cleared away; under its old, known name anyone might make a trap.
            old = self._at
            self.root, self._at = self._make_root()
            self._seen = None
            self._old.append(old)
            self._close_old()
            return _Folder(self.root, self._at, str(self._made))

    def _close_old(self) -> None:
        """Close the roots that no folder is in any more."""
        used = {folder.above for folder in (*self._folders.values(), *self._clean)}
        for descriptor in set(self._old) - used:
            self._old.remove(descriptor)
            os.close(descriptor)

    def _make_root(self) -> tuple[str, int]:
        root = tempfile.mkdtemp(prefix=_PREFIX)
        try:
            with open(os.path.join(root, _OWNER), "w", encoding="utf-8") as file:
                self._hold(file.fileno())
                json.dump(self._owner, file)
            return root, os.open(root, PLACE)
        except OSError:
            remove(root)  # without an owner record it would never be removed
            raise

    def _hold(self, fd: int) -> None:
        """Lock the owner record. No child has its descriptor after exec, so the lock ends with this process."""
        self._release()
        self._lock = os.dup(fd)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def write(self, key: str, name: str, data: bytes) -> None:
        fd, before = self._folders[key].create(name)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if before > len(data):
                # Do not truncate to 0 first: if a file was emptied and written anew, ext4 waits for the disk.
                os.ftruncate(fd, len(data))
        finally:
            os.close(fd)

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        # The task may have put anything under this name; a pipe or a mount must not hang the worker.
        try:
            fd = open_here(name, _WARY, self._folders[key].at)
        except (OSError, KeyError):
            return b""
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                return b""
            left = max(0, status.st_size - offset)
            return os.pread(fd, left if limit < 0 else min(left, limit), offset)
        finally:
            os.close(fd)

    def why_unread(self, key: str, name: str) -> str | None:
        try:
            above = self._folders[key].at
            mode = _stat_of(name, above).st_mode
            if S_ISREG(mode):
                os.close(open_here(name, _WARY, above))
                return None
        except (FileNotFoundError, KeyError):
            return None
        except OSError as error:
            what = "is a mount" if error.errno == errno.EXDEV else f"cannot be opened ({error.strerror})"
        else:
            what = f"is {_KINDS.get(S_IFMT(mode), 'a pipe, socket or device')}"
        return f"{what}, and only a regular file is read."

    def close(self, key: str) -> None:
        folder = self._folders.pop(key, None)
        if folder is None:
            return
        if folder.clear():
            self._clean.append(folder)
        else:
            self._set_aside(folder)

    def look(self) -> None:
        self._remover.look()
        if self._unmoved and time.monotonic() >= self._move_at:
            unmoved, self._unmoved = self._unmoved, []
            for stuck in unmoved:
                self.put_aside(stuck.name, stuck.above, stuck.path)
                os.close(stuck.above)
        with suppress(OSError):
            self._clear_root()

    def _clear_root(self) -> None:
        """Put aside what tasks left beside the folders of attempts, as much as one step may. Errors: OSError."""
        changed = os.fstat(self._at).st_mtime_ns
        if changed == self._seen:
            return
        listed = os.open(".", LISTED, dir_fd=self._at)
        try:
            with os.scandir(listed) as entries:
                names = [entry.name for entry in islice(entries, _LISTED_MAX + 1)]
        finally:
            os.close(listed)
        own = {_OWNER, LOANS, *(folder.name for folder in (*self._folders.values(), *self._clean))}
        own.update(stuck.name for stuck in self._unmoved)
        others = [name for name in names if name not in own and not name.startswith(ENDED)]
        # A task may have given its own folder another name; it is told by what its worker holds open.
        used = [os.fstat(folder.at) for folder in self._folders.values()]
        for name in (left := [name for name in others if not _is_one_of(name, self._at, used)])[:_AT_ONCE]:
            self.put_aside(name, self._at, f"{self.root}/{name}")
        whole = left == others and len(left) <= _AT_ONCE and len(names) <= _LISTED_MAX
        # What was put aside has changed the root again; and two changes within a tick of the clock are one.
        self._seen = changed if whole and not left and time.time_ns() - changed > _TICK_NS else None

    @property
    def notes(self) -> tuple[str, ...]:
        first = [f"a task left {quoted(stuck.path)}{stuck.why}" for stuck in self._unmoved[:_TOLD_MAX]]
        if (more := len(self._unmoved) - _TOLD_MAX) > 0:
            first.append(f"{more} more of what tasks left cannot be moved")
        return (*first, *self._remover.notes)

    def take_over(self, abandoned: list[Abandoned]) -> None:
        """Have the scratch of workers that are gone removed, and what others of this user left. Never raises."""
        for left in abandoned:
            _become_rubbish(left.root)
        if mine(tmp := tempfile.gettempdir(), RUBBISH):
            self._remover.clear(tmp, [self.root])

    def _set_aside(self, folder: _Folder) -> None:
        """Have the folder of an attempt removed. Never raises."""
        self.put_aside(folder.name, folder.above, folder.path)
        folder.leave()

    def put_aside(self, name: str, above: int, path: str) -> bool:
        """Rename what a task left below this scratch, so that it is removed whatever becomes of this process; return
        whether nothing has that name now. What cannot be renamed is told in `notes`, and tried again.

        name: in the directory `above`; path: the same, for people. Never raises.
        """
        new = f"{ENDED}{secrets.token_hex(6)}"
        try:
            try:
                os.rename(name, new, src_dir_fd=above, dst_dir_fd=self._at)
            except PermissionError:
                _open_up(self._at, above)  # the task has closed them
                os.rename(name, new, src_dir_fd=above, dst_dir_fd=self._at)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._unmoved.append(_Stuck(name, os.dup(above), path, _why_unmoved(name, above, path, error)))
            self._move_at = time.monotonic() + _MOVE_AGAIN_S
            return False
        self._remover.clear(tempfile.gettempdir(), [self.root])
        return True

    def remove(self) -> None:
        for folder in self._folders.values():
            folder.leave()
        for stuck in self._unmoved:
            os.close(stuck.above)
        for folder in self._clean:
            folder.vanish()
        self._folders, self._clean, self._unmoved = {}, [], []
        self._close_old()
        with suppress(OSError):
            os.rmdir(LOANS, dir_fd=self._at)
        with suppress(OSError):
            if _is_empty_but(self._at, _OWNER):
                os.unlink(_OWNER, dir_fd=self._at)
        os.close(self._at)
        try:
            os.rmdir(self.root)
        except FileNotFoundError:
            pass
        except OSError:
            _become_rubbish(self.root)
            self._remover.clear(tempfile.gettempdir(), [])
        self._remover.finish(CLOSE_WITHIN_S)
        self._release()


class _Folder:
    """The folder of one attempt after another.

    The directories' change times show whether an attempt left anything: every operation on a directory changes them,
    if they are older than a tick of the clock that sets them. A mount changes none of them, so each look also asks
    whether one is there.
    """

    def __init__(self, root: str, above: int, name: str) -> None:
        """Make it. above: the descriptor of its root. Errors: OSError."""
        self.path, self.above, self.name = f"{root}/{name}", above, name
        os.mkdir(name, _MODE, dir_fd=above)
        self.at = open_here(name, NAMED | os.O_DIRECTORY, above)
        for part in _PARTS:
            os.mkdir(part, _MODE, dir_fd=self.at)
        self._times = self._changed()
        self._telling = False

    def stands(self) -> bool:
        """Whether the folder is as it was when it was last clear. Never raises."""
        try:
            return self._changed() == self._times
        except OSError:
            return False

    def begin(self) -> None:
        """Note that an attempt is about to use it."""
        self._telling = time.time_ns() - max(self._times) > _TICK_NS

    def create(self, name: str) -> tuple[int, int]:
        """A descriptor to write a file anew, and the file's old length. Errors: OSError.

        The last attempt's file is used again, unless it was kept elsewhere or made unusable. Nothing is opened or
        removed through a link that a task put in the place of a directory on the way.
        """
        way, _, last = name.rpartition("/")
        if not way:
            return _created(last, self.at)
        folder = open_here(way, NAMED | os.O_DIRECTORY, self.at)
        try:
            return _created(last, folder)
        finally:
            os.close(folder)

    def clear(self) -> bool:
        """Remove a few small files beside its two directories; return whether it is as it was made. Never raises."""
        try:
            if self._telling and self._changed() == self._times:
                return True
            folder = open_here(self.name, LISTED, self.above)
        except OSError:
            return False
        try:
            cleared = os.path.samestat(os.fstat(folder), os.fstat(self.at)) and self._cleared(folder)
            self._times = self._changed()
            return cleared
        except OSError:
            return False
        finally:
            os.close(folder)

    def _cleared(self, folder: int) -> bool:
        """Whether nothing is in there, after what can be removed at once was. Errors: OSError."""
        if os.fstat(folder).st_size > _DIRECTORY_MAX:
            return False  # it held many entries, and to list it takes as long as if it still did
        parts = 0
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _AT_ONCE + 1)]
        if len(names) > _AT_ONCE:
            return False
        for name in names:
            if name in _PARTS:
                parts += self._is_empty(name)
                continue
            entry = open_here(name, NAMED, self.at)
            try:
                status = os.fstat(entry)
            finally:
                os.close(entry)
            if name == TASK and S_ISREG(status.st_mode):
                continue
            if S_ISDIR(status.st_mode) or status.st_blocks > _BLOCKS_MAX:
                return False
            os.unlink(name, dir_fd=self.at)
        return parts == len(_PARTS)

    def _is_empty(self, part: str) -> bool:
        inner = open_here(part, LISTED, self.at)
        try:
            status = os.fstat(inner)
            if status.st_mode & _MODE != _MODE or status.st_size > _DIRECTORY_MAX:
                return False
            with os.scandir(inner) as entries:
                return next(entries, None) is None
        finally:
            os.close(inner)

    def leave(self) -> None:
        """Use it no more."""
        os.close(self.at)

    def vanish(self) -> None:
        """Remove it as far as it is as it was made; the rest stays. Never raises."""
        with suppress(OSError):
            os.unlink(TASK, dir_fd=self.at)
        with suppress(OSError):
            for part in _PARTS:
                os.rmdir(part, dir_fd=self.at)
            os.rmdir(self.name, dir_fd=self.above)
        self.leave()

    def _changed(self) -> tuple[int, ...]:
        """The change times of its directories, and of nothing that was mounted there. Errors: OSError."""
        found = [
            _stat_of(self.name, self.above).st_ctime_ns,
            *(_stat_of(part, self.at).st_ctime_ns for part in _PARTS),
        ]
        with suppress(FileNotFoundError):
            _stat_of(TASK, self.at)  # only whether it is mounted
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Stuck:
    """Something that could not be renamed: its name in the directory `above`, a descriptor of its own."""

    name: str
    above: int
    path: str
    why: str


def _created(name: str, above: int) -> tuple[int, int]:
    """As `_Folder.create`, in the directory `above` itself."""
    try:
        fd = open_here(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, above)
    except FileNotFoundError:
        pass
    except OSError:
        os.unlink(name, dir_fd=above)
    else:
        status = os.fstat(fd)
        if S_ISREG(status.st_mode) and status.st_nlink == 1:
            return fd, status.st_size
        os.close(fd)
        os.unlink(name, dir_fd=above)
    return open_here(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, above, 0o666), 0


def _open_up(*folders: int) -> None:
    """Let their owner change these directories. Errors: OSError."""
    for folder in folders:
        os.chmod(f"/proc/self/fd/{folder}", _MODE)


def _why_unmoved(name: str, above: int, path: str, error: OSError) -> str:
    """Say how large something is that cannot be renamed, and why it cannot. Never raises."""
    if error.errno in (errno.EBUSY, errno.EXDEV):
        return f", which cannot be moved: something is mounted on it; run: umount {quoted(path)}"
    why = f"{error.strerror or error}"
    if error.errno == errno.EPERM and is_fixed(name, above):
        why = f"it is immutable; run: chattr -R -i -a {quoted(path)}"
    elif error.errno == errno.EPERM and is_fixed("", above):
        why = f"its folder is immutable; run: chattr -i -a {quoted(os.path.dirname(path))}"
    with suppress(OSError):
        place = open_here(name, NAMED, above)
        status = os.fstat(place)
        os.close(place)
        # A directory may have any number of entries, and this is part of a step.
        least = "at least " if S_ISDIR(status.st_mode) else ""
        return f" ({least}{status.st_blocks * 512 / (1 << 20):.1f} MiB), which cannot be moved: {why}"
    return f", which cannot be moved: {why}"


def _stat_of(name: str, above: int) -> os.stat_result:
    entry = open_here(name, NAMED, above)
    try:
        return os.fstat(entry)
    finally:
        os.close(entry)


def _is_one_of(name: str, above: int, known: list[os.stat_result]) -> bool:
    """Whether a name is one of these. Never raises."""
    try:
        entry = open_here(name, NAMED, above)
    except OSError:
        return False
    try:
        status = os.fstat(entry)
        return any(os.path.samestat(status, one) for one in known)
    finally:
        os.close(entry)


def _is_empty_but(folder: int, name: str) -> bool:
    listed = os.open(".", LISTED, dir_fd=folder)
    try:
        with os.scandir(listed) as entries:
            return [entry.name for entry in islice(entries, 2)] == [name]
    finally:
        os.close(listed)


def _become_rubbish(root: str) -> None:
    """Give the scratch of a worker that is gone the name by which every worker of this user removes it."""
    new = os.path.join(os.path.dirname(root), f"{RUBBISH}{secrets.token_hex(6)}")
    try:
        os.rename(root, new)
    except FileNotFoundError:
        pass  # another worker was quicker
    except OSError as error:
        log.warning("%s of a worker that is gone cannot be removed: %s", quoted(root), error.strerror)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The scratch of a worker whose process is gone: a local record that it ran here, whatever the share says."""

    root: str
    worker: str
    spool: str


def find_abandoned(host: Host) -> list[Abandoned]:
    """Scratch directories of this user whose workers are gone; an unreadable one belongs to another user."""
    found: list[Abandoned] = []
    for name, above in entries(tmp := tempfile.gettempdir(), _PREFIX):
        with suppress(OSError, ValueError, KeyError, TypeError, BadFile):
            record, gone = _record_of(name, above, host)
            if gone:
                found.append(Abandoned(os.path.join(tmp, name), record["worker"], record["spool"]))
    return found


def _record_of(name: str, above: int, host: Host) -> tuple[dict[str, Any], bool]:
    """The owner record in a scratch of this user, and whether its worker is gone.

    Errors: OSError, ValueError, KeyError, TypeError, BadFile.
    """
    folder = open_here(name, NAMED | os.O_DIRECTORY, above)
    try:
        with open(open_here(_OWNER, _WARY, folder), "rb") as file:
            if {os.fstat(folder).st_uid, os.fstat(file.fileno()).st_uid} != {os.getuid()}:
                raise PermissionError(name)
            record = codec.load_object(file.read(_OWNER_MAX), _OWNER)
            gone = _is_free(file.fileno()) if record.get("locked") else _was_here(record, host)
    finally:
        os.close(folder)
    return record, gone


def _is_free(fd: int) -> bool:
    """Whether no process holds the lock of an owner record. Errors: OSError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _was_here(record: dict[str, Any], host: Host) -> bool:
    """Whether the process of a former release, which held no lock, is gone. Errors: KeyError, TypeError."""
    return surely_gone(HostIdentity(**record["host"]), ProcessIdentity(**record["process"]), host)


class MemoryScratch:
    """Folders in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}

    def open(self, key: str) -> str:
        self.close(key)
        return f"/scratch/{key}"

    def write(self, key: str, name: str, data: bytes) -> None:
        self.files[key, name] = data

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        data = self.files.get((key, name), b"")
        return data[offset:] if limit < 0 else data[offset : offset + limit]

    def why_unread(self, key: str, name: str) -> str | None:
        return None

    def close(self, key: str) -> None:
        for found in [found for found in self.files if found[0] == key]:
            with suppress(KeyError):
                del self.files[found]

    def look(self) -> None:
        pass

    notes: tuple[str, ...] = ()

    def remove(self) -> None:
        self.files.clear()
