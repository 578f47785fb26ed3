"""Freezer: where a worker's own control group is, and which of those that spoold made are abandoned."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spoold.runner import freezer, process_tree
from spoold.runner.freezer import Stopper
from spoold.runner.supervisor import Lease
from tests.runner.processes import eventually, lives, new_mark
from tests.runner.test_lease import NoGuard, run_of
from tests.runner.test_runner_freeze import group


def test_where_the_group_is_comes_from_the_mounts_and_not_from_a_path_by_heart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "a b"
    (mount / "user" / "me").mkdir(parents=True)
    (mount / "user" / "me" / "cgroup.procs").touch()
    escaped = str(mount).replace(" ", "\\040")
    shown = {
        "/proc/self/cgroup": "1:name=systemd:/\n0::/outer/user/me\n",
        "/proc/self/mountinfo": "30 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n"
        f"31 1 0:2 /other {tmp_path} rw - cgroup2 cgroup2 rw\n"
        f"32 1 0:2 /outer {escaped} rw shared:4 - cgroup2 cgroup2 rw\n",
    }
    real = freezer._read
    monkeypatch.setattr(freezer, "_read", lambda path: shown[path].encode() if path in shown else real(path))
    assert freezer.home() == str(mount / "user" / "me")
    shown["/proc/self/cgroup"] = "0::/../elsewhere\n"
    assert freezer.home() == "", "a group that this mount does not show"
    shown["/proc/self/cgroup"] = "1:cpu:/\n"
    assert freezer.home() == "", "version 1"


def test_without_a_group_it_says_why_and_nothing_fails(tmp_path: Path) -> None:
    for where, why in (("", "no cgroup v2"), (str(tmp_path), "cgroup.freeze"), (f"{tmp_path}/none", "none")):
        room = freezer.Room(where, os.getpid(), 1)
        room.open()
        assert why in room.trouble
        room.enter()
        assert not room.freeze(0.1)
        room.thaw()
        assert not room.holds(os.getpid())
        room.clear()
    assert list(tmp_path.iterdir()) == []


DEAD = textwrap.dedent("""
    import os, subprocess, sys, time
    from spoold.runner.freezer import Room
    room = Room({where!r}, os.getpid(), 1)
    room.open()
    subprocess.Popen(["sleep", {mark!r}], preexec_fn=room.enter, stdout=subprocess.DEVNULL)
    print(room.freeze(5), flush=True)
    time.sleep(600)
""")


def test_what_a_dead_worker_left_in_the_ice_is_ended_and_what_lives_is_left_alone() -> None:
    where, mark = group("cgroup"), new_mark()
    script = DEAD.format(where=where, mark=mark)
    lives_on, dies = (
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    try:
        for process in (lives_on, dies):
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "True"
        dies.kill()
        dies.wait()
        (left,) = Path(where).glob(f"spoold-*-{dies.pid}-*")
        (used,) = Path(where).glob(f"spoold-*-{lives_on.pid}-*")
        (frozen,) = map(int, (left / "cgroup.procs").read_text().split())
        # What is called so by others, or means a process id of another machine's, is not ours to remove.
        strange = [Path(where, name) for name in ("spoold-1-2", f"spoold-1-{dies.pid}-7-1")]
        for folder in strange:
            folder.mkdir()
        assert freezer.sweep(where) >= 1
        assert not left.exists()
        eventually(lambda: not lives(frozen))
        assert used.exists()
        for folder in strange:
            folder.rmdir()
    finally:
        for process in (lives_on, dies):
            process.kill()
            process.communicate()
        freezer.sweep(where)
    assert not used.exists()


def test_a_group_from_another_time_namespace_is_only_removed_if_no_process_has_its_number() -> None:
    """N12: start times count from another moment there; one of a former release names no time namespace."""
    where, mine, me = group("cgroup"), os.stat("/proc/self/ns/pid").st_ino, os.getpid()
    living = [Path(where, f"spoold-{mine}-1-{me}-7-1"), Path(where, f"spoold-{mine}-{me}-7-1")]
    dead = Path(where, f"spoold-{mine}-1-{2**22 + 1}-7-1")
    for folder in (*living, dead):
        folder.mkdir()
    try:
        freezer.sweep(where)
        assert [folder.exists() for folder in (*living, dead)] == [True, True, False]
    finally:
        for folder in living:
            folder.rmdir()


def test_a_group_is_removed_however_deep_the_job_made_groups_below_it(tmp_path: Path) -> None:
    """A walk by recursion ended the supervisor after a thousand."""
    dead = tmp_path / f"spoold-{os.stat('/proc/self/ns/pid').st_ino}-1-{2**22 + 1}-7-1"
    (dead / "beside").mkdir(parents=True)
    where = str(dead)
    for _ in range(1_500):
        os.mkdir(where := f"{where}/d")
    assert freezer.sweep(str(tmp_path)) == 1
    assert not dead.exists()


class Slow(freezer.Room):
    """A group that the kernel cannot freeze whole: one process in it waits for a share that hangs."""

    def __init__(self, said: list[str]) -> None:
        super().__init__("", 0, 0)
        self.trouble, self._said = "", said

    def freeze(self, patience_s: float) -> bool:
        self._said.append("freeze")
        return False

    def thaw(self) -> None:
        self._said.append("thaw")


def test_what_a_group_does_not_freeze_in_time_gets_its_signal_before_the_group_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    process = subprocess.Popen(["sleep", "60"])
    real = os.kill

    def kill(pid: int, number: int) -> None:
        said.append(f"signal {number:d}")
        real(pid, number)

    monkeypatch.setattr(os, "kill", kill)
    sent: list[dict[str, object]] = []

    def find(run: object) -> list[process_tree.Seen]:
        seen = process_tree.look(process.pid)
        return [seen] if seen is not None else []

    try:
        lease, run = Lease(find, sent.append, Slow(said), NoGuard), run_of({})  # type: ignore[arg-type]
        lease.until = 0.0
        lease.strike(run)
        assert said[:3] == ["freeze", "signal 19", "thaw"]
        assert find(run)[0].state == b"T"
        assert "in time" in str(sent[0]["signals"])
        lease.mind(run, run.next_look)
        assert said.count("freeze") == 1, "it is not tried again while that lasts"
        lease.thaw(run, float("inf"))
        eventually(lambda: find(run)[0].state == b"S")
    finally:
        process.kill()
        process.wait()
    assert isinstance(run.ice, Stopper)
