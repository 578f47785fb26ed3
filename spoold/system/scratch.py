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
from typing import Protocol

from spoold.system.host import Host, HostIdentity, ProcessIdentity, surely_gone

_PREFIX = "spoold-scratch-"
_OWNER = "owner.json"
WORK = "work"
DEPS = "deps"


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
    """Folders under a fresh private directory of the machine's temporary directory."""

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

    def open(self, key: str) -> str:
        folder = os.path.join(self.root, key)
        shutil.rmtree(folder, ignore_errors=True)
        for part in (WORK, DEPS):
            os.makedirs(os.path.join(folder, part))
        return folder

    def write(self, key: str, name: str, data: bytes) -> None:
        with open(os.path.join(self.root, key, name), "wb") as file:
            file.write(data)

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        path = os.path.join(self.root, key, name)
        # The task may have put anything under this name; a pipe must not hang the worker.
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        with os.fdopen(fd, "rb") as file:
            if not os.path.isfile(fd):
                return b""
            file.seek(offset)
            return file.read(limit)

    def close(self, key: str) -> None:
        shutil.rmtree(os.path.join(self.root, key), ignore_errors=True)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


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
