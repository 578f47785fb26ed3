"""Goal: what a node knows of its mount is of the mount that is there now.

Method: a directory over which something else is mounted while the port is in use, for real in a name space of its own
where this user may make one, and else as the table of mounts would tell it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.daemon.progress_watch import Pulse, pulsing
from spoold.store.initialise import initialise
from spoold.store.step_timing import DEAR, Polling
from spoold.store.store import open_store
from spoold.system import hints as hints_module
from spoold.system.clock import ManualClock
from spoold.system.hints import Hints
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.mounts import Ground, Mount
from spoold.system.posix import PosixFileSystem

LOCAL = Mount("/", "ext4", "/dev/sda1", ("rw",))
AUTO = Mount("/mnt", "autofs", "systemd-1", ("rw",))
NFS3 = Mount("/mnt", "nfs", "nas:/x", ("rw", "vers=3"))
NFS4 = Mount("/mnt", "nfs4", "nas:/x", ("rw", "vers=4.2"))
SMB = Mount("/mnt", "cifs", "//nas/x", ("rw",))


class Table:
    """A table of mounts with one line, which changes."""

    def __init__(self, mount: Mount | None) -> None:
        self.mount = mount
        self.changes = 0
        self.looks = 0

    def becomes(self, mount: Mount | None) -> None:
        self.mount = mount
        self.changes += 1

    def ground(self, root: str) -> Ground:
        return Ground(root, self.find, lambda: self.changes)

    def find(self, root: str) -> Mount | None:
        self.looks += 1
        return self.mount


def facts(ground: Ground) -> tuple[bool, bool, bool, bool]:
    return ground.remote, ground.forgets, bool(ground.unbuffered), ground.touching is not None


def test_what_follows_from_a_mount_follows_it() -> None:
    table = Table(LOCAL)
    ground = table.ground("/mnt")
    for mount, expected in [
        (LOCAL, (False, False, False, False)),
        (AUTO, (True, True, False, False)),  # nobody has looked into it yet
        (NFS4, (True, False, True, True)),
        (SMB, (True, True, False, False)),
        (NFS3, (True, False, False, True)),
        (None, (True, True, False, False)),
    ]:
        table.becomes(mount)
        assert facts(ground) == expected, mount


def test_the_mount_is_looked_up_again_only_when_the_table_has_changed() -> None:
    table = Table(NFS3)
    ground = table.ground("/mnt")
    touching = ground.touching
    for _ in range(9):
        facts(ground)
    assert table.looks == 1
    table.becomes(NFS3)  # something else was mounted somewhere
    assert ground.touching is touching, "what was polled is remembered"
    assert table.looks == 2


def test_a_node_goes_by_the_mount_that_is_there_now() -> None:
    clock, table = ManualClock(), Table(LOCAL)
    memory = MemoryFileSystem(clock)
    initialise(memory, clock, "s1", "spool")
    ground = table.ground("/mnt")

    class OnGround(MemoryFileSystem):
        remote = property(lambda self: ground.remote)
        forgets = property(lambda self: ground.forgets)

    memory.__class__ = OnGround
    fs = pulsing(memory, Pulse())
    looks = Polling(open_store(fs, clock, "w1", "spool"))
    assert (fs.remote, fs.forgets, looks.rationed, looks.dear) == (False, False, False, 1.0)
    table.becomes(SMB)
    assert (fs.remote, fs.forgets, looks.rationed, looks.dear) == (True, True, True, DEAR)


def test_hints_are_of_the_mount_that_is_there_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(LOCAL)
    monkeypatch.setattr(hints_module, "Ground", table.ground)
    hints = Hints(tmp_path)
    hints.watch([""])
    assert hints.fileno() >= 0
    table.becomes(NFS4)
    assert hints.clear(), "other directories are to be watched"
    assert "is nfs4, where other machines' changes raise no events" in str(hints.reason)
    assert hints.fileno() < 0
    table.becomes(LOCAL)
    assert hints.clear()
    hints.watch([""])
    (tmp_path / "new").mkdir()
    assert hints.reason is None
    assert hints.fileno() >= 0
    hints.close()


REAL = """
import json, subprocess, sys, time
from spoold.system.mounts import LOOK_S
from spoold.system.posix import PosixFileSystem
root = sys.argv[1]
fs = PosixFileSystem(root)
def fstype():
    assert fs.remote is False
    return fs._ground.mount.fstype
told = [fstype()]
for command in (["mount", "-t", "tmpfs", "tmpfs", root], ["mount", "-o", "remount,ro", root], ["umount", root]):
    subprocess.run(command, check=True)
    time.sleep(LOOK_S)
    told += [fstype(), "ro" in fs._ground.mount.options]
print(json.dumps(told))
"""


def test_the_kernel_tells_of_a_mount_that_comes_changes_and_goes(tmp_path: Path) -> None:
    own = ["unshare", "--mount", "--map-root-user"]
    try:
        subprocess.run([*own, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this user may mount nothing in a name space of its own: {error}")
    done = subprocess.run(
        [*own, sys.executable, "-c", REAL, str(tmp_path)], check=True, capture_output=True, text=True
    )
    before, *told = json.loads(done.stdout)
    assert before == PosixFileSystem(tmp_path)._ground.mount.fstype  # type: ignore[union-attr]
    assert told == ["tmpfs", False, "tmpfs", True, before, told[-1]]
