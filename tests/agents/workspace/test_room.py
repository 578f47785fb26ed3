"""A full disk below the workspaces is this machine's fault: named, uncharged, and over once there is room."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.workspace import room
from spoold.agents.workspace.git import GitFailed
from tests.agents.attempts import Desk, Ended
from tests.agents.workspace.repos import Remote

# It writes as much as its prompt says, in MiB; what does not fit makes it fail.
AGENT = """
import os, sys
open("ran.txt", "w").write("x")
with open("big.bin", "wb") as file:
    file.write(os.urandom(int(float(sys.stdin.read().split()[0]) * (1 << 20))))
print('SPOOL:COMPLETED {"text": "wrote it"}')
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 60 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=60m", "none", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def attempt(tmp_path: Path, disk: Path, mib: float, previous: Any = None, task: str = "t") -> Ended:
    remote = Remote(tmp_path) if not (tmp_path / "remote.git").exists() else None
    path = str(remote.path) if remote is not None else str(tmp_path / "remote.git")
    desk = Desk(tmp_path, AGENT, {"workspace": {"repo": path, "dir": str(disk / "ws")}}, {"SPOOL_TASK_ID": task})
    desk.previous = previous
    return desk.run(prompt=str(mib))


def test_an_attempt_on_a_full_disk_is_not_charged_and_goes_on_once_there_is_room(tmp_path: Path, disk: Path) -> None:
    """A task that writes 2 bytes failed for good in 16 s, for a traceback."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * (56 << 20))
    first = attempt(tmp_path, disk, 0.001)
    assert (first.code, first.result["outcome"], first.result["not_here"]) == (75, "later", "type"), first.said
    (reason,) = first.result["reasons"]
    assert reason.startswith(f"the disk of {disk / 'ws'} is full: ")
    assert "Fix: free some room there" in reason
    assert "Traceback" not in reason
    second = attempt(tmp_path, disk, 0.001, {"attempt": 1, "output": first.result})
    assert second.result["retry_after_s"] > first.result["retry_after_s"]
    filler.unlink()
    assert attempt(tmp_path, disk, 0.001).result["outcome"] == "done"


def test_work_that_finds_no_room_when_it_is_saved_is_brought_away_from_here_later(tmp_path: Path, disk: Path) -> None:
    ended = attempt(tmp_path, disk, 45)
    assert (ended.code, ended.result["outcome"], "not_here" in ended.result) == (75, "later", False), ended.said
    assert "is full" in ended.result["reasons"][0]
    subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
    again = attempt(tmp_path, disk, 1, {"attempt": 1, "output": ended.result})
    assert (again.code, again.result["outcome"]) == (0, "done"), again.said


def failed(errors: str) -> GitFailed:
    return GitFailed(("fetch", "x"), 128, errors)


def test_only_an_error_that_speaks_of_it_is_one_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = str(tmp_path / "not" / "there")
    assert room.short(top) == ""
    assert room.fault_of(OSError(errno.ENOSPC, "No space left on device"), top).startswith("a disk of this machine")
    assert room.fault_of(failed("remote: error: No space left on device"), top) == "", "the server's disk is full"
    monkeypatch.setattr(room, "LEAST", 1 << 60)
    assert room.fault_of(failed("fatal: write error: No space left on device"), top).startswith(f"the disk of {top}")
    assert room.fault_of(OSError(errno.EACCES, os.strerror(errno.EACCES)), top) == ""
    assert room.fault_of(failed("fatal: not a repository"), top) == ""
