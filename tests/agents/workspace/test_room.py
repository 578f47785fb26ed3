"""A full disk below the workspaces is this machine's fault: named, uncharged, and over once there is room."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
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


# It fills the disk to its last byte, and more than once, and says that it is done.
FILLS = """
import os
print('SPOOL:SESSION {{"id": "s"}}')
with open({paid!r}, "a") as file:
    file.write("x")
for name, size in (("big.bin", 1 << 20), ("small.bin", 1)):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while {full!r} != "no":
            os.write(file, b"x" * size)
    except OSError:
        pass
open("ran.txt", "w").close()
print('SPOOL:USAGE {{"tokens_in": 10, "tokens_out": 20, "cost_usd": 0.5}}')
print('SPOOL:COMPLETED {{"text": ' + repr({text!r} * {times}).replace("'", '"') + '}}')
"""


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
    """The agent was started again beside the work that could not be saved, once there was room for another."""
    ended = attempt(tmp_path, disk, 45)
    assert (ended.code, ended.result["outcome"], "not_here" in ended.result) == (75, "later", False), ended.said
    assert f"the disk of {disk / 'ws'} is full" in ended.result["reasons"][0]
    ended = attempt(tmp_path, disk, 1, {"attempt": 1, "output": ended.result})
    assert (ended.code, ended.result["outcome"]) == (75, "later"), ended.said
    assert f"the disk of {disk / 'ws'} is full" in ended.result["reasons"][0]
    subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
    again = attempt(tmp_path, disk, 1, {"attempt": 1, "output": ended.result})
    assert (again.code, again.result["outcome"]) == (0, "done"), again.said
    assert "its agent had ended, and is not started again" in again.said


@pytest.mark.parametrize("times", [1, 500_000])
@pytest.mark.parametrize("where", ["the workspace", "the workspace and the result"])
def test_an_agent_that_filled_the_disk_to_the_last_byte_is_not_paid_again(
    tmp_path: Path, disk: Path, where: str, times: int
) -> None:
    """times: 500,000 words are more than the room that is kept for them."""
    top = disk if where == "the workspace and the result" else tmp_path
    paid, remote = tmp_path / "paid", Remote(tmp_path)
    said = {"workspace": {"repo": str(remote.path), "dir": str(disk / "ws")}}
    script = FILLS.format(paid=str(paid), full="yes", text="it ", times=times)
    desk = Desk(top, script, said, {"TMPDIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)})
    first = desk.run(prompt="x")
    assert (first.code, first.result["outcome"], first.result["tokens_used"]) == (75, "later", 30), first.said
    assert "is full" in first.result["reasons"][0]
    assert set(first.result["unsaved"]) == {"worker", "folder", "push"}
    assert first.result["text"].endswith("it it " if times > 1 else "it ")
    subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
    desk.previous, desk.env = {"attempt": 1, "output": first.result}, {**desk.env, "SPOOL_ATTEMPT": "2"}
    again = desk.run(prompt="x")
    assert (again.code, again.result["outcome"], len(paid.read_text())) == (0, "done", 1), again.said
    assert again.result["text"].endswith("it it " if times > 1 else "it ")
    assert "tokens_used" not in again.result
    assert "ran.txt" in again.result["changed_files"]


def test_room_that_is_kept_for_a_file_takes_its_next_two_contents(tmp_path: Path, disk: Path) -> None:
    path = disk / "record.json"
    room.keep(str(path))
    with open(disk / "filler", "wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 4096):
            pass
    room.replace(str(path), b"a" * 30_000)
    assert path.read_bytes() == b"a" * 30_000
    room.replace(str(path), b"b" * 10)
    assert path.read_bytes() == b"b" * 10
    with pytest.raises(OSError, match="No space"):
        room.replace(str(path), b"c" * (room.KEPT * 4))
    assert path.read_bytes() == b"b" * 10, "replaced whole or not at all"


def failed(errors: str) -> GitFailed:
    return GitFailed(("fetch", "x"), 128, errors)


def test_only_an_error_that_speaks_of_it_is_one_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = str(tmp_path / "not" / "there")
    assert room.short(top) == ""
    assert room.fault_of(OSError(errno.ENOSPC, "No space left on device"), top).startswith("a disk of this machine")
    assert room.fault_of(failed("remote: error: No space left on device"), top) == "", "the server's disk is full"
    assert str(room.no_room(top, "it failed")).startswith(f"the disk of {top} has too little room: it failed. Fix: ")
    monkeypatch.setattr(room, "LEAST", 1 << 60)
    assert room.fault_of(failed("fatal: write error: No space left on device"), top).startswith(f"the disk of {top}")
    assert room.fault_of(OSError(errno.EACCES, os.strerror(errno.EACCES)), top) == ""
    assert room.fault_of(failed("fatal: not a repository"), top) == ""
