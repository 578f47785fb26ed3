"""The scratch port: a worker's own local directory, one folder per attempt, gone when the attempt is committed.

Law: it lies on a local disk and never on the share, since processes write here that must not hang with the share.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from stat import S_ISDIR, S_ISREG
from typing import Protocol

from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone

_PREFIX = "spoold-scratch-"
_OWNER = "owner.json"
WORK = "work"
DEPS = "deps"
_MODE = 0o700


class Scratch(Protocol):
    """Folders by key; the key is a legal file name. Raises OSError as POSIX would."""

    def open(self, key: str) -> str:
        """Make the folder with `work/` and `deps/` inside, empty, and return its absolute path."""
        ...

    def write(self, key: str, name: str, data: bytes) -> None:
        """Write a file inside the folder."""
        ...

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        """A part of a file inside the folder; empty when it is not there or no regular file."""
        ...

    def close(self, key: str) -> None:
        """Remove the folder and all that a task left in it. Never raises."""
        ...

    def remove(self) -> None:
        """Remove the whole scratch. Never raises."""
        ...


class LocalScratch:
    """Folders under a fresh private directory of the machine's temporary directory.

    A folder in which nothing was left is used again: making and removing three directories for each attempt would
    cost more than all else that is done for it here.
    """

    def __init__(self, worker: str, spool: str, host: Host) -> None:
        self.root = tempfile.mkdtemp(prefix=_PREFIX)
        record = {
            "worker": worker,
            "spool": spool,
            "host": asdict(host.identity()),
            "process": asdict(host.process()),
        }
        with open(os.path.join(self.root, _OWNER), "w", encoding="utf-8") as file:
            json.dump(record, file)
        self._folders: dict[str, str] = {}
        self._made = 0
        self._clean: list[str] = []

    def open(self, key: str) -> str:
        self.close(key)
        folder = self._clean.pop() if self._clean else self._make()
        self._folders[key] = folder
        return folder

    def _make(self) -> str:
        self._made += 1
        folder = f"{self.root}/{self._made}"
        for directory in (folder, f"{folder}/{WORK}", f"{folder}/{DEPS}"):
            os.mkdir(directory, _MODE)
        return folder

    def write(self, key: str, name: str, data: bytes) -> None:
        fd = os.open(f"{self._folders[key]}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        # The task may have put anything under this name; a pipe must not hang the worker.
        try:
            fd = os.open(f"{self._folders[key]}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
        if _emptied(folder):
            self._clean.append(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def _emptied(folder: str) -> bool:
    """Remove the files beside `work/` and `deps/`; whether the folder is now as it was made. Never raises."""
    parts = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in (WORK, DEPS):
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if not S_ISDIR(mode) or mode & 0o700 != _MODE or os.listdir(entry.path):
                        return False
                    parts += 1
                else:
                    os.unlink(entry.path)
        return parts == 2
    except OSError:
        return False


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
    """Scratch directories of this user whose workers are gone; what cannot be read is somebody else's."""
    found: list[Abandoned] = []
    for root in sorted(glob.glob(os.path.join(tempfile.gettempdir(), f"{_PREFIX}*"))):
        try:
            with open(os.path.join(root, _OWNER), encoding="utf-8") as file:
                record = json.load(file)
            gone = surely_gone(HostIdentity(**record["host"]), ProcessIdentity(**record["process"]), host)
            if gone and os.stat(root).st_uid == os.getuid():
                found.append(Abandoned(root, record["worker"], record["spool"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


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
