"""What may go: what ended long enough ago, and the remote has whole."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from spoold.agents.workspace import committing, workspace_layout, workspace_retention
from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.git import WorkspaceFailed
from spoold.agents.workspace.workspace_layout import Places
from spoold.agents.workspace.workspace_retention import Judged, find, list_workspaces
from spoold.protocol.errors import NotFound
from spoold.system.remover import Left
from tests.agents.workspace.repos import Remote, git, pushed, workspace, write
from tests.support.trees import deep


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return tmp_path / "host"


def judged(host: Path, now: float = 1e9, keep_s: float | None = None) -> list[Judged]:
    return collect(Places(str(host)), keep_s, wall=lambda: now)


def told(host: Path, now: float = 1e9) -> dict[str, tuple[bool, str]]:
    return {one.task: (one.removed, one.why) for one in judged(host, now)}


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_it_goes_when_its_time_is_over_and_not_before(remote: Remote, host: Path, kind: str) -> None:
    ref = pushed(remote, host, "edit", {"b.txt": "two\n"}, keep_s=60, kind=kind)
    assert told(host, now=1059.0) == {"edit": (False, "kept for another 1 s")}
    assert told(host, now=1060.0) == {"edit": (True, ref)}
    assert told(host) == {}
    assert not os.listdir(host / "work")
    pushed(remote, host, "edit", {"b.txt": "three\n"}, attempt=2, kind=kind)


def test_one_in_use_is_not_touched(remote: Remote, host: Path) -> None:
    with workspace(remote, host) as made:
        tree = made.open()
        assert told(host) == {"edit": (False, "in use")}
        assert find(Places(str(host)), "edit").state == "in use"
        assert os.path.isdir(tree)


def test_one_that_another_process_saves_or_removes_is_said_to_be(remote: Remote, host: Path) -> None:
    pushed(remote, host, "edit", {"b.txt": "two\n"})
    [folder] = Places(str(host)).folders()
    held = workspace_layout.take(folder)
    assert held is not None
    assert told(host) == {"edit": (False, "another process is saving or removing it just now")}
    assert find(Places(str(host)), "edit").state == "saved"
    os.close(held)


def test_looking_at_workspaces_is_in_nobodys_way(remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ls` held their locks for a moment: an attempt that began then began with nothing."""
    pushed(remote, host, "edit", {"b.txt": "two\n"})
    monkeypatch.setattr(workspace_layout, "take", lambda folder: pytest.fail("it was locked"))
    assert [one.state for one in list_workspaces(Places(str(host)))] == ["saved"]


def test_the_lock_of_a_folder_that_has_gone_meanwhile_is_none(
    remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(remote, host, "edit", {"b.txt": "two\n"})
    [folder] = Places(str(host)).folders()
    real = fcntl.flock

    def late(held: int, how: int) -> None:
        os.rename(folder, f"{folder}.1")
        real(held, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert workspace_layout.take(folder) is None


def test_an_attempt_that_comes_between_the_looks_keeps_its_workspace(
    remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked at by the record of the one before, and said to hold the only copy of what the remote has."""
    pushed(remote, host, "edit", {"b.txt": "two\n"})
    real = workspace_retention._there

    def late(repo: str, names: list[str]) -> dict[str, str]:
        there = real(repo, names)
        pushed(remote, host, "edit", {"b.txt": "three\n"}, attempt=2)
        return there

    monkeypatch.setattr(workspace_retention, "_there", late)
    assert told(host) == {"edit": (False, "an attempt has been there just now")}
    assert find(Places(str(host)), "edit").attempt == 2


def test_what_a_killed_process_left_is_pushed_first(remote: Remote, host: Path) -> None:
    made = workspace(remote, host)
    write(made.open(), {"b.txt": "two\n"})
    made._let_go()  # as the kernel does for a killed process
    assert find(Places(str(host)), "edit").state == "not saved"
    ((removed, why),) = told(host, now=5000.0).values()
    assert (removed, why) == (False, "kept for another 1 d")
    assert remote.read("refs/spool/edit/1", "b.txt") == "two\n"
    assert find(Places(str(host)), "edit").state == "saved"
    assert told(host) == {"edit": (True, "refs/spool/edit/1")}


def test_what_cannot_be_pushed_stays(remote: Remote, host: Path) -> None:
    made = workspace(remote, host)
    write(made.open(), {"b.txt": "two\n"})
    made._let_go()
    remote.path.rename(f"{remote.path}.away")
    ((removed, why),) = told(host).values()
    assert not removed
    assert why.startswith("not saved: the repository")


def test_what_the_remote_has_lost_is_pushed_again_unless_it_landed(remote: Remote, host: Path) -> None:
    ref = pushed(remote, host, "edit", {"b.txt": "two\n"})
    commit = remote.commit(ref)
    git("update-ref", "-d", ref, cwd=remote.path)
    assert told(host) == {"edit": (True, ref)}
    assert remote.refs() == {ref: commit}
    pushed(remote, host, "other", {"c.txt": "two\n"})
    git("update-ref", "refs/heads/main", "refs/spool/other/1", cwd=remote.path)
    git("update-ref", "-d", "refs/spool/other/1", cwd=remote.path)
    assert told(host) == {"other": (True, "refs/spool/other/1")}
    assert remote.refs() == {ref: commit}


def test_the_only_copy_of_something_stays_until_a_person_removes_it(remote: Remote, host: Path) -> None:
    with workspace(remote, host) as made:
        tree = Path(made.open())
        write(tree, {"inner/.git": "gitdir: /elsewhere", "inner/x.txt": "x\n", "b.txt": "two\n"})
        made.save("saved")
    why = "the commits of the repository there, which cannot be read"
    assert told(host) == {"edit": (False, f"the only copy: inner: {why}")}


def test_what_lies_beside_the_work_is_pushed_again_too(remote: Remote, host: Path) -> None:
    with workspace(remote, host) as made:
        tree = Path(made.open())
        git("checkout", "-q", "-b", "side", cwd=tree)
        write(tree, {"b.txt": "two\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "side", cwd=tree)
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        more = made.save("saved").more
    commit = remote.commit(more)
    git("update-ref", "-d", more, cwd=remote.path)
    assert find(Places(str(host)), "edit").state == "saved"
    assert told(host) == {"edit": (True, more)}, "it said that nothing was made there"
    assert remote.refs() == {more: commit}


def test_what_came_into_it_after_the_last_save_is_no_more_removed_than_seen(remote: Remote, host: Path) -> None:
    """G7: an independent look at every byte, before it is gone."""
    with workspace(remote, host) as made:
        tree = Path(made.open())
        write(tree, {".gitattributes": "*.crlf text eol=crlf\n", ".gitignore": "*.log\n", "noise.log": "x"})
        (tree / "a.crlf").write_bytes(b"one\r\ntwo\r\n")
        (tree / "link").symlink_to("a.txt")
        (tree / "line\nbreak").write_text("x")
        os.mkfifo(tree / "pipe")
        made.save("saved")
    late = tree / "late.txt"
    late.write_text("late\n")
    ((removed, why),) = told(host).values()
    assert (removed, why) == (False, "the only copy: late.txt and what it holds is in no commit of the remote")
    assert judged(host)[0].unsaved
    late.write_text("one\n")  # as a.txt has it
    assert told(host) == {"edit": (True, "refs/spool/edit/1")}


@pytest.mark.parametrize("where", ["home/wt", "tree/ignored/wt", "beside"])
@pytest.mark.parametrize("owner", ["", "inner"])
@pytest.mark.parametrize("moved", [False, True])
def test_files_of_another_worktree_are_looked_at_before_it_goes(
    remote: Remote, host: Path, where: str, owner: str, moved: bool
) -> None:
    with workspace(remote, host) as made:
        tree = Path(made.open())
        folder = tree.parent / where
        write(tree, {".gitignore": "ignored\nnoise\n"})
        if owner:
            git("init", "-q", owner, cwd=tree)
            git("commit", "-q", "--allow-empty", "-m", "x", cwd=tree / owner)
        git("worktree", "add", "-q", "-b", "wt", f"{folder}{'-was' * moved}", cwd=tree / owner)
        if moved:
            Path(f"{folder}-was").rename(folder)
        write(folder, {"b.txt": "b\n", ".gitignore": "noise\n", "noise": "x\n"})
        made.save("saved")
    write(folder, {"late.txt": "late\n"})
    ((removed, why),) = told(host).values()
    assert not removed
    assert "late.txt" in why
    (folder / "late.txt").unlink()
    ((removed, why),) = told(host).values()
    assert removed, why


def test_a_look_that_fails_removes_nothing(remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed(remote, host, "edit", {"b.txt": "two\n"})
    monkeypatch.setattr(committing, "caged", lambda *about: "5")
    ((removed, why),) = told(host).values()
    assert (removed, "failed" in why) == (False, True)


def test_half_made_ones_and_those_without_a_change_go(remote: Remote, host: Path) -> None:
    pushed(remote, host, "nothing", {})
    (host / "work" / "half.123456").mkdir()
    assert {one.why for one in judged(host)} == {"half made: no agent has been in it", "nothing was made there"}
    assert not os.listdir(host / "work")


def test_folders_that_their_owner_closed_go_too(remote: Remote, host: Path) -> None:
    with workspace(remote, host) as made:
        made.open()
        write(made.home, {"cache/module/x.go": "x\n"})
        (Path(made.home) / "cache" / "module").chmod(0o500)
        made.save("nothing")
    assert [one.removed for one in judged(host)] == [True]
    assert not os.listdir(host / "work")


def test_folders_of_any_depth_are_saved_and_go(remote: Remote, host: Path) -> None:
    """N2: 1,300 levels in the workspace or its git directory ended `save`, every task after it, and `gc`."""
    with workspace(remote, host, kind="clone") as made:
        tree = Path(made.open())
        deep(tree / "deep")
        deep(Path(made.home) / "deep")
        deep(tree / ".git" / "objects" / "d")
        made.save("nothing")
    assert workspace_retention.size_of(str(host)) > 3 * 1300
    assert [one.removed for one in judged(host)] == [True]
    assert not os.listdir(host / "work")


def test_what_cannot_be_removed_is_said_and_is_not_unsaved(
    remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2: `spool workspace gc` said "this is a bug"."""
    pushed(remote, host, "nothing", {})
    (host / "work" / "half.123456").mkdir()
    stays = Left("/where/it is", "something is mounted on it; run: umount '/where/it is'", 3 << 20)
    monkeypatch.setattr(workspace_retention, "remove", lambda folder: [stays])
    found = judged(host)
    assert [(one.removed, one.unsaved) for one in found] == [(False, False)] * 2
    assert {one.why for one in found} == {
        "it cannot be removed: '/where/it is' (3 MiB): something is mounted on it; run: umount '/where/it is'"
    }


def test_beyond_the_quota_what_is_safe_goes_early_and_what_is_not_is_named(remote: Remote, host: Path) -> None:
    pushed(remote, host, "old", {"b.txt": "x" * (2 << 20)})
    with workspace(remote, host, "next", quota_mb=1) as made:
        made.open()
    assert [one.task for one in list_workspaces(Places(str(host)))] == ["next"]
    busy = workspace(remote, host, "busy")
    write(busy.open(), {"b.txt": "x" * (2 << 20)})
    with (
        workspace(remote, host, "next", attempt=2, quota_mb=1) as made,
        pytest.raises(WorkspaceFailed, match=r"their quota_mb is 1\. Workspaces that stay: busy \(in use\)"),
    ):
        made.open()
    busy.close()


def test_a_file_with_two_names_takes_its_room_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (1 << 20))
    os.link(tmp_path / "a", tmp_path / "b")
    assert 1 << 20 <= workspace_retention.size_of(str(tmp_path)) < 2 << 20


def test_a_workspace_that_is_not_here_is_said(host: Path) -> None:
    with pytest.raises(NotFound, match=r"`spool workspace ls` shows those there are"):
        find(Places(str(host)), "edit")
