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
from dataclasses import dataclass
from pathlib import Path

from spoold.system.mounts import mount_of

MEMORY = "/dev/shm"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is measured: the folder, and its file system as people call it (ext4, tmpfs)."""

    parent: str
    kind: str

    @contextmanager
    def scratch(self) -> Iterator[str]:
        """An empty folder, while the `with` lasts; on ext4 one that does not suffer from what was removed before.

        ext4 does not use an inode again within a minute or more of its removal, and whoever makes a file looks past
        all of those, one by one: after ten thousand of them a task cost the leader five times as much. Below a
        directory with the attribute T, each folder gets inodes from where its name hashes to (chattr(1); the kernel's
        fs/ext4/ialloc.c, recently_deleted).
        """
        parent = tempfile.mkdtemp(prefix="spoold-bench-", dir=self.parent)
        try:
            if self.kind == "ext4":
                subprocess.run(["chattr", "+T", parent], check=True, capture_output=True)
            yield tempfile.mkdtemp(dir=parent)
        finally:
            shutil.rmtree(parent, ignore_errors=True)


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
