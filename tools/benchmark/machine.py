"""The machine that was measured, and the folders that it was measured in.

Touches: /proc, the mount table, a scratch folder in each place that is removed again.
"""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from spoold.system.mounts import mount_of

MEMORY = "/dev/shm"
# So many inodes make one neighbourhood (16 groups of 8,192, as mke2fs has it); so often another name is tried.
APART, TRIES = 1 << 17, 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is measured: the folder, and its file system as people call it (ext4, tmpfs)."""

    parent: str
    kind: str
    _used: list[int] = field(default_factory=list, repr=False, compare=False)

    @contextmanager
    def scratch(self) -> Iterator[str]:
        """An empty folder, while the `with` lasts; on ext4 one that does not suffer from what was removed before.

        ext4 does not use an inode again within a minute or more of its removal, and whoever makes a file looks past
        all of those, one by one: after ten thousand of them a task cost the leader five times as much. Below a
        directory with the attribute T, a folder gets its inodes from where its name hashes to (chattr(1); the
        kernel's fs/ext4/ialloc.c, recently_deleted), and a name is chosen by which nobody was there before.
        """
        parent = tempfile.mkdtemp(prefix="spoold-bench-", dir=self.parent)
        try:
            if self.kind != "ext4":
                yield parent
                return
            subprocess.run(["chattr", "+T", parent], check=True, capture_output=True)
            yield self._untouched(parent)
        finally:
            shutil.rmtree(parent, ignore_errors=True)

    def _untouched(self, parent: str) -> str:
        """A new folder whose inodes lie apart from those of earlier ones, if there is such a place."""
        tried = [tempfile.mkdtemp(dir=parent)]
        while len(tried) < TRIES and self._is_near(tried[-1]):
            tried.append(tempfile.mkdtemp(dir=parent))
        self._used.append(os.stat(tried[-1]).st_ino)
        return tried[-1]

    def _is_near(self, folder: str) -> bool:
        inode = os.stat(folder).st_ino
        return any(abs(inode - used) < APART for used in self._used)


def places(chosen: str | None) -> tuple[Place, ...]:
    """The one that was chosen, else the disk behind TMPDIR and, where there is one, a file system in memory."""
    disk = Path(chosen or tempfile.gettempdir()).resolve()
    found = [Place(str(disk), _kind(disk))]
    if chosen is None and found[0].kind != "tmpfs" and os.access(MEMORY, os.W_OK) and _kind(Path(MEMORY)) == "tmpfs":
        found.append(Place(MEMORY, "tmpfs"))
    return tuple(found)


def _kind(folder: Path) -> str:
    mount = mount_of(str(folder))
    return mount.fstype if mount is not None else "unknown"


def facts(used: tuple[Place, ...]) -> dict[str, object]:
    """What a reader has to know to judge the figures."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "memory_gib": round(int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) / (1 << 20)),
        "load": round(os.getloadavg()[0], 1),
        "places": [place.kind for place in used],
        "commit": _commit(),
    }


def _field(path: str, name: str) -> str:
    try:
        for line in Path(path).read_text().splitlines():
            if line.partition(":")[0].strip() == name:
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "0"


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
