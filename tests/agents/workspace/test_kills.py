"""Goal: a kill -9 between any two commands loses no work, and keeps no later attempt from beginning."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.workspace_layout import Places
from tests.agents.workspace.repos import Remote, pushed, workspace

WITHIN_S = 600


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_killed_before_each_command_the_next_attempt_has_its_work(tmp_path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.workspace.kills", str(tmp_path), kind],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_lock_files_that_a_killed_command_left_are_removed(tmp_path: Path, kind: str) -> None:
    remote = Remote(tmp_path)
    pushed(remote, tmp_path / "host", "first", {"b.txt": "two\n"}, kind=kind)
    mirror = Path(Mirror(Places(str(tmp_path / "host")), str(remote.path)).directory)
    tip = remote.land({"c.txt": "three\n"})
    old = time.time() - 3600
    for name in ("packed-refs.lock", "config.lock", "refs/remotes/origin/main.lock", "shallow.lock"):
        (mirror / name).touch()
        os.utime(mirror / name, (old, old))
    with workspace(remote, tmp_path / "host", "second", kind=kind) as made:
        made.open()
        assert made.save("nothing").base == tip


@pytest.mark.parametrize("what", [("HEAD",), ("HEAD", "config.lock"), ("config", "objects/", "refs/")])
def test_a_mirror_that_was_only_begun_is_made(tmp_path: Path, what: tuple[str, ...]) -> None:
    remote = Remote(tmp_path)
    mirror = Path(Mirror(Places(str(tmp_path / "host")), str(remote.path)).directory)
    mirror.mkdir(parents=True)
    for name in what:
        (mirror / name).mkdir() if name.endswith("/") else (mirror / name).touch()
    assert pushed(remote, tmp_path / "host", "edit", {"b.txt": "x\n"}) == "refs/spool/edit/1"


def test_a_young_lock_file_of_an_agent_in_a_worktree_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote(tmp_path)
    pushed(remote, tmp_path / "host", "first", {"b.txt": "two\n"}, kind="worktree")
    mirror = Mirror(Places(str(tmp_path / "host")), str(remote.path))
    lock = Path(mirror.directory) / "packed-refs.lock"
    waits: list[float] = []

    def agent_ends(seconds: float) -> None:
        waits.append(seconds)
        assert lock.exists()
        lock.unlink()

    with workspace(remote, tmp_path / "host", "other", kind="worktree") as made:
        made.open()
        lock.touch()
        monkeypatch.setattr("spoold.agents.workspace.mirror.time.sleep", agent_ends)
        with mirror.locked():
            assert waits


def test_what_an_agent_that_has_ended_left_locked_is_waited_for_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next task of the repository began half a minute later."""
    remote = Remote(tmp_path)
    pushed(remote, tmp_path / "host", "first", {"b.txt": "two\n"}, kind="worktree")
    mirror = Mirror(Places(str(tmp_path / "host")), str(remote.path))
    lock = Path(mirror.directory) / "packed-refs.lock"

    def waited(seconds: float) -> None:
        pytest.fail("it waits")

    with workspace(remote, tmp_path / "host", "clone") as made:
        made.open()  # in one of another kind, nobody locks the mirror
        lock.touch()
        monkeypatch.setattr("spoold.agents.workspace.mirror.time.sleep", waited)
        with mirror.locked():
            assert not lock.exists()


def test_a_lock_file_with_a_date_to_come_is_waited_for_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent in a worktree gave it that date, or the clock was set back: it was young until that day."""
    remote = Remote(tmp_path)
    pushed(remote, tmp_path / "host", "first", {"b.txt": "two\n"}, kind="worktree")
    mirror = Mirror(Places(str(tmp_path / "host")), str(remote.path))
    lock = Path(mirror.directory) / "packed-refs.lock"

    def waited(seconds: float) -> None:
        pytest.fail("it waits for an hour")

    with workspace(remote, tmp_path / "host", "other", kind="worktree") as made:
        made.open()
        lock.touch()
        os.utime(lock, (time.time() + 3600,) * 2)
        monkeypatch.setattr("spoold.agents.workspace.mirror.time.sleep", waited)
        with mirror.locked():
            assert not lock.exists()
