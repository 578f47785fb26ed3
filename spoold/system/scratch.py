"""The scratch port: a worker's own local directory, one folder per attempt, gone when the attempt is committed.

Law: it is on a local disk and never on the share, since processes that write here must not hang with the share.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from stat import S_ISDIR, S_ISREG
from typing import Protocol

from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone

_PREFIX = "spoold-scratch-"
_OWNER = "owner.json"
# Anyone may put a file of that name into a public directory; ours has some hundred bytes.
_OWNER_MAX = 1 << 16
WORK = "work"
DEPS = "deps"
TASK = "task.json"
_MODE = 0o700
_TICK_NS = 50_000_000
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
        """A part of a file inside the folder; empty if it is missing or not a regular file."""
        ...

    def close(self, key: str) -> None:
        """Remove the folder and everything that a task left in it. Never raises."""
        ...

    def remove(self) -> None:
        """Remove the whole scratch. Never raises."""
        ...


class LocalScratch:
    """Folders under a fresh private directory of the machine's temporary directory.

    A folder that an attempt left empty is used again: making and removing three directories for each attempt would
    cost more than everything else here.
    """

    def __init__(self, worker: str, spool: str, host: Host) -> None:
        self._owner = {
            "worker": worker,
            "spool": spool,
            "host": asdict(host.identity()),
            "process": asdict(host.process()),
        }
        self.root = self._make_root()
        self._folders: dict[str, _Folder] = {}
        self._clean: list[_Folder] = []
        self._made = 0

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
            shutil.rmtree(folder.path, ignore_errors=True)
        return None

    def _make(self) -> _Folder:
        self._made += 1
        try:
            return _Folder(f"{self.root}/{self._made}")
        except FileNotFoundError:
            # The whole root was cleared away; under its old, known name anyone might make a trap.
            self.root = self._make_root()
            return _Folder(f"{self.root}/{self._made}")

    def _make_root(self) -> str:
        root = tempfile.mkdtemp(prefix=_PREFIX)
        try:
            with open(os.path.join(root, _OWNER), "w", encoding="utf-8") as file:
                json.dump(self._owner, file)
        except OSError:
            shutil.rmtree(root, ignore_errors=True)  # without an owner record it would never be removed
            raise
        return root

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
        # The task may have put anything under this name; a pipe must not hang the worker.
        try:
            fd = os.open(f"{self._folders[key].path}/{name}", _WARY)
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

    def close(self, key: str) -> None:
        folder = self._folders.pop(key, None)
        if folder is None:
            return
        if folder.clear():
            self._clean.append(folder)
        else:
            shutil.rmtree(folder.path, ignore_errors=True)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


class _Folder:
    """The folder of one attempt after another.

    The directories' change times show whether an attempt left anything: every operation on a directory changes them,
    if they are older than a tick of the clock that sets them.
    """

    def __init__(self, path: str) -> None:
        """Make it. Errors: OSError."""
        self.path = path
        self._parts = (f"{path}/{WORK}", f"{path}/{DEPS}")
        for directory in (path, *self._parts):
            os.mkdir(directory, _MODE)
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

        The last attempt's file is used again, unless it was kept elsewhere or made unusable.
        """
        path = f"{self.path}/{name}"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
        except OSError:
            os.unlink(path)
        else:
            status = os.fstat(fd)
            if status.st_nlink == 1:
                return fd, status.st_size
            os.close(fd)
            os.unlink(path)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), 0

    def clear(self) -> bool:
        """Remove files beside its two directories; return whether it is as it was made. Never raises."""
        try:
            if self._telling and self._changed() == self._times:
                return True
            parts = 0
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.path in self._parts:
                        mode = entry.stat(follow_symlinks=False).st_mode
                        parts += S_ISDIR(mode) and mode & _MODE == _MODE and not os.listdir(entry.path)
                    elif entry.name != TASK or not entry.is_file(follow_symlinks=False):
                        os.unlink(entry.path)
            self._times = self._changed()
            return parts == len(self._parts)
        except OSError:
            return False

    def _changed(self) -> tuple[int, ...]:
        return tuple(os.lstat(directory).st_ctime_ns for directory in (self.path, *self._parts))


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The scratch of a worker whose process is gone: a local record that it ran here, whatever the share says."""

    root: str
    worker: str
    spool: str

    def remove(self) -> None:
        """Remove it. Never raises."""
        shutil.rmtree(self.root, ignore_errors=True)


def find_abandoned(host: Host) -> list[Abandoned]:
    """Scratch directories of this user whose workers are gone; an unreadable one belongs to another user."""
    found: list[Abandoned] = []
    for root in sorted(glob.glob(os.path.join(tempfile.gettempdir(), f"{_PREFIX}*"))):
        try:
            with open(os.path.join(root, _OWNER), "rb", opener=_open_warily) as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    continue
                record = json.loads(file.read(_OWNER_MAX))
            gone = surely_gone(HostIdentity(**record["host"]), ProcessIdentity(**record["process"]), host)
            if gone and os.stat(root).st_uid == os.getuid():
                found.append(Abandoned(root, record["worker"], record["spool"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def _open_warily(path: str, flags: int) -> int:
    """In a public directory anyone may make a pipe under this name."""
    return os.open(path, flags | _WARY)


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

    def close(self, key: str) -> None:
        for found in [found for found in self.files if found[0] == key]:
            with suppress(KeyError):
                del self.files[found]

    def remove(self) -> None:
        self.files.clear()
