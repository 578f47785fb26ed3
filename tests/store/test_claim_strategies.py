"""One race under both strategies, where rename is not exclusive: `rename` claims twice, `lock` once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

import pytest

from spoold.protocol import layout
from spoold.protocol.doctor_report import Strategy
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import Mover
from spoold.store.initialise import initialise
from spoold.store.locked_renames import LockedFileSystem
from spoold.store.mover import Fate
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock, SystemClock
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.posix import PosixFileSystem
from tests.house.sources import CHECKOUT
from tests.support.unexclusive import CopyThenDelete

PATIENCE_S = 60.0
TASKS = 16
LANE = "ready/type=a"

# Claims whatever is there once "go" is said; the pause between copy and deletion is what makes a race of it.
CLAIMS = """
import sys, time
from spoold.protocol.lifecycle import Mover
from spoold.store.store import open_store
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from tests.support.unexclusive import CopyThenDelete
root, me = sys.argv[1:]
mount = CopyThenDelete(PosixFileSystem(root), lambda: time.sleep(0.002))
store = open_store(mount, SystemClock(), me, root)
mount.inner.mkdir(f"claimed/{me}")
print("there", flush=True)
sys.stdin.readline()
while names := sorted(store.fs.list("ready/type=a")):
    for name in names:
        store.move(Mover.WORKER, "CLAIMED", f"ready/type=a/{name}", f"claimed/{me}/{name}")
"""


def make_spool(root: Path, claim: str) -> PosixFileSystem:
    root.mkdir()
    fs = PosixFileSystem(root)
    initialise(fs, SystemClock(), "s1", str(root), cast(Strategy, claim))
    fs.mkdir(LANE)
    return fs


def claimed(fs: PosixFileSystem) -> list[str]:
    return sorted(name for node in fs.list("claimed") for name in fs.list(f"claimed/{node}"))


@pytest.mark.parametrize(("claim", "fates"), [("rename", [Fate.DONE, Fate.DONE]), ("lock", [Fate.DONE, Fate.LOST])])
def test_two_claim_one_task_at_the_same_moment(tmp_path: Path, claim: str, fates: list[Fate]) -> None:
    fs = make_spool(tmp_path / "spool", claim)
    fs.write(f"{LANE}/task", b"{}", durable=False)
    # Both stand between copy and deletion, or, where that cannot be, the one who does waits for the other in vain.
    both = threading.Barrier(2, timeout=None if claim == "rename" else 1.0)
    found: list[Fate] = []

    def between() -> None:
        try:
            both.wait(PATIENCE_S if claim == "rename" else None)
        except threading.BrokenBarrierError:
            assert claim == "lock"

    def take(me: str) -> None:
        store = open_store(CopyThenDelete(fs, between), SystemClock(), me, str(tmp_path / "spool"))
        store.fs.mkdir(f"claimed/{me}")
        found.append(store.move(Mover.WORKER, "CLAIMED", f"{LANE}/task", f"claimed/{me}/task").fate)

    threads = [threading.Thread(target=take, args=(me,)) for me in ("w1", "w2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(found) == fates
    assert claimed(fs) == ["task"] * fates.count(Fate.DONE)


@pytest.mark.parametrize("claim", ["rename", "lock"])
def test_processes_race_for_many_tasks(tmp_path: Path, claim: str) -> None:
    root = tmp_path / "spool"
    fs = make_spool(root, claim)
    names = [f"task{number:03}" for number in range(TASKS)]
    for name in names:
        fs.write(f"{LANE}/{name}", b"{}", durable=False)
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMS, str(root), f"w{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        for number in range(4)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in crowd:
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    assert set(claimed(fs)) == set(names)
    if claim == "lock":
        assert claimed(fs) == names
    else:
        assert len(claimed(fs)) > len(names)


def made(claim: Strategy) -> MemoryFileSystem:
    fs = MemoryFileSystem()
    initialise(fs, ManualClock(), "s1", "/spool", claim)
    return fs


def test_the_strategy_is_the_spools_and_never_a_nodes() -> None:
    def opened(fs: MemoryFileSystem) -> Store:
        return open_store(fs, ManualClock(), "w1", "/spool")

    by_rename, by_lock = made("rename"), made("lock")
    assert opened(by_rename).fs is by_rename
    assert isinstance(opened(by_lock).fs, LockedFileSystem)
    assert opened(by_lock).marker.claim == "lock"
    assert layout.LOCK not in by_rename.list("")
    assert by_lock.read(layout.LOCK) == b""


def test_a_strategy_that_is_not_known_is_refused() -> None:
    fs = made("rename")
    marker = fs.read(layout.MARKER).replace(b'"rename"', b'"vote"')
    fs.write(layout.MARKER, marker, durable=False)
    said = r"/spool/spool.json: claim: is 'vote'; this spoold knows 'rename' and 'lock'. Fix: upgrade spoold"
    with pytest.raises(BadFile, match=said):
        open_store(fs, ManualClock(), "w1", "/spool")


def test_of_a_later_format_the_format_is_told_and_not_the_strategy() -> None:
    fs = made("rename")
    fs.write(layout.MARKER, b'{"format": 2, "spool_id": "s", "claim": "vote"}', durable=False)
    with pytest.raises(BadFile, match="format: is 2"):
        open_store(fs, ManualClock(), "w1", "/spool")
