"""A push into a repository on a share, where another machine died in the middle of its own."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from spoold.agents.merge.candidates import Candidate
from spoold.agents.workspace import publishing
from spoold.agents.workspace.git import Git, RemoteRefused, WorkspaceFailed
from spoold.agents.workspace.publishing import publish, publish_branch
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
    monkeypatch.setattr(publishing, "HELD_S", 0.2)
    outcome = land(remote, tmp_path, one)
    assert outcome.whole
    assert remote.commit("main") == outcome.after == outcome.tested[0]
    assert not locks(remote)


def test_work_gets_its_reference_after_a_machine_died_in_its_push(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_while_it_pushes(remote, "refs/spool/two/1")
    assert locks(remote) == ["refs/spool/two/1.lock"]
    monkeypatch.setattr(publishing, "HELD_S", 0.2)
    assert pushed(remote, tmp_path / "agents", "two", {"c.txt": "two\n"}) == "refs/spool/two/1"


def test_a_push_that_goes_on_is_waited_for(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = remote.path / "refs" / "heads" / "main.lock"
    lock.touch()
    waited = threading.Event()
    monkeypatch.setattr(publishing, "sleep", lambda s: waited.set())
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
    monkeypatch.setattr(publishing, "sleep", lambda s: lock.write_text(lock.read_text() + "x"))
    with pytest.raises(WorkspaceFailed, match=r"main\.lock': File exists"):
        land(remote, tmp_path, one)
    assert lock.exists()
    assert remote.commit("main") == remote.first


def test_a_lock_of_another_reference_stays(
    remote: Remote, one: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "HELD_S", 0.0)
    others = [remote.path / "packed-refs.lock", remote.path / "refs" / "heads" / "other.lock"]
    for other in others:
        other.touch()
    assert land(remote, tmp_path, one).whole
    assert all(other.exists() for other in others)


@pytest.mark.parametrize(
    ("stands", "fix"),
    [
        ("refs/heads/spool", "rename or delete branch spool in "),
        ("refs/heads/spool/t/deeper", "rename or delete branch spool/t/deeper in "),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_in_the_way_of_another_is_no_absence(remote: Remote, stands: str, fix: str, packed: bool) -> None:
    """B5: "'refs/heads/spool' exists; cannot create 'refs/heads/spool/t'" was waited for, for ever."""
    git("update-ref", stands, "main", cwd=remote.path)
    if packed:
        git("pack-refs", "--all", cwd=remote.path)
    own, commit = Git(str(remote.path)), remote.commit("main")
    with pytest.raises(RemoteRefused, match=fix):
        publish_branch(own, str(remote.path), commit, "spool/t")
    git("update-ref", "-d", stands, cwd=remote.path)
    publish_branch(own, str(remote.path), commit, "spool/t")
    assert remote.commit("refs/heads/spool/t") == commit


@pytest.mark.parametrize("stands", ["refs/spool", "refs/spool/t", "refs/spool/t/1/x"])
def test_a_reference_in_the_way_of_work_is_no_absence(remote: Remote, stands: str) -> None:
    git("update-ref", stands, "main", cwd=remote.path)
    own, commit = Git(str(remote.path)), remote.commit("main")
    with pytest.raises(RemoteRefused, match=f"rename or delete reference {stands} in "):
        publish(own, str(remote.path), commit, "t", 1)
    git("update-ref", "-d", stands, cwd=remote.path)
    assert publish(own, str(remote.path), commit, "t", 1) == "refs/spool/t/1"


def test_names_that_only_look_alike_are_in_nobodys_way(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("refs/heads/spoo", "refs/heads/x/refs/heads/spool", "refs/heads/spool/tt", "refs/tags/spool"):
        git("update-ref", name, "main", cwd=remote.path)
    publish_branch(Git(str(remote.path)), str(remote.path), remote.commit("main"), "spool/t")
    monkeypatch.setattr(publishing, "_freed", lambda *said: False)
    (remote.path / "refs" / "heads" / "spool" / "t.lock").touch()
    other = git("commit-tree", "main^{tree}", "-m", "x", cwd=remote.path)
    with pytest.raises(WorkspaceFailed, match="cannot be pushed") as raised:
        publish_branch(Git(str(remote.path)), str(remote.path), other, "spool/t")
    assert not isinstance(raised.value, RemoteRefused)
