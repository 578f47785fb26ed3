"""A push into a repository on a share, where another machine died in the middle of its own."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from spoold.agents.merge.candidate import Candidate
from spoold.agents.workspace import pushing
from spoold.agents.workspace.remote import WorkspaceFailed
from tests.agents.merge.lanes import land, work
from tests.agents.workspace.repos import Remote, git, pushed, write

# What git says there is right before it moves the references, all of which it has locked.
DIES = """#!/bin/sh
[ "$1" = prepared ] && kill -9 $PPID
exit 0
"""


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, {"a.txt": "one\n"})


@pytest.fixture
def one(remote: Remote, tmp_path: Path) -> Candidate:
    return work(remote, tmp_path, "one", {"b.txt": "one\n"})


def locks(remote: Remote) -> list[str]:
    """The lock files that lie in the repository."""
    return sorted(str(path.relative_to(remote.path)) for path in remote.path.rglob("*.lock"))


def dies_while_it_pushes(remote: Remote, ref: str) -> None:
    """A person's push to a reference whose machine loses power while git holds the locks."""
    hook = remote.path / "hooks" / "reference-transaction"
    hook.write_text(DIES)
    hook.chmod(0o755)
    write(remote.clone, {"lost.txt": "never landed\n"})
    git("add", "-A", cwd=remote.clone)
    git("commit", "-q", "-m", "lost", cwd=remote.clone)
    git("push", "-q", "origin", f"HEAD:{ref}", cwd=remote.clone, check=False)
    hook.unlink()


def test_a_merge_lands_after_a_machine_died_in_its_push(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_while_it_pushes(remote, "refs/heads/main")
    assert locks(remote) == ["HEAD.lock", "refs/heads/main.lock"]
    monkeypatch.setattr(pushing, "HELD_S", 0.2)
    outcome = land(remote, tmp_path, one)
    assert outcome.whole
    assert remote.commit("main") == outcome.after == outcome.tested[0]
    assert not locks(remote)


def test_work_gets_its_reference_after_a_machine_died_in_its_push(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_while_it_pushes(remote, "refs/spool/two/1")
    assert locks(remote) == ["refs/spool/two/1.lock"]
    monkeypatch.setattr(pushing, "HELD_S", 0.2)
    assert pushed(remote, tmp_path / "agents", "two", {"c.txt": "two\n"}) == "refs/spool/two/1"


def test_a_push_that_goes_on_is_waited_for(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = remote.path / "refs" / "heads" / "main.lock"
    lock.touch()
    waited = threading.Event()
    monkeypatch.setattr(pushing, "sleep", lambda s: waited.set())
    found = []
    merge = threading.Thread(target=lambda: found.append(land(remote, tmp_path, one)))
    merge.start()
    assert waited.wait(30)
    assert lock.exists()
    lock.unlink()
    merge.join(60)
    assert found[0].whole


def test_a_lock_that_changes_is_never_removed(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = remote.path / "refs" / "heads" / "main.lock"
    lock.touch()
    monkeypatch.setattr(pushing, "sleep", lambda s: lock.write_text(lock.read_text() + "x"))
    with pytest.raises(WorkspaceFailed, match=r"main\.lock': File exists"):
        land(remote, tmp_path, one)
    assert lock.exists()
    assert remote.commit("main") == remote.first


def test_a_lock_of_another_reference_stays(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "HELD_S", 0.0)
    others = [remote.path / "packed-refs.lock", remote.path / "refs" / "heads" / "other.lock"]
    for other in others:
        other.touch()
    assert land(remote, tmp_path, one).whole
    assert all(other.exists() for other in others)
