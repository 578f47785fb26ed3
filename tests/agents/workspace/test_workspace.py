"""A workspace: from the base to a reference on the remote, whatever the agent does in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.agents.workspace import attempt_workspace
from spoold.agents.workspace.git import WorkspaceFailed
from tests.agents.workspace.repos import Remote, git, pushed, workspace, write
from tests.support.trees import deep

KINDS = ("clone", "worktree")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, {"a.txt": "one\n", ".gitignore": "*.log\n", "run.sh": "#!/bin/sh\n"})


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_agent_made_is_on_the_remote_with_its_author(remote: Remote, tmp_path: Path, kind: str) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        assert git("branch", "--show-current", cwd=tree) == "spool/edit/1"
        write(tree, {"a.txt": None, "new/b.txt": "two\n", "x.log": "noise"})
        (tree / "run.sh").chmod(0o755)
        (tree / "link").symlink_to("new/b.txt")
        saved = made.save("do it")
    assert (saved.ref, saved.base, saved.no_change) == ("refs/spool/edit/1", remote.first, False)
    assert remote.refs() == {saved.ref: saved.commit}
    assert saved.changed_files == ("a.txt", "link", "new/b.txt", "run.sh")
    assert remote.files(saved.ref) == [".gitignore", "link", "new/b.txt", "run.sh"]
    who = git("log", "-1", "--format=%an|%ae|%cn|%P|%B", saved.ref, cwd=remote.path)
    assert who.startswith(
        f"coder|coder@spool.invalid|spool|{remote.first}|do it\n\nSpool-Task: edit\nSpool-Attempt: 1"
    )
    assert remote.commit("main") == remote.first


@pytest.mark.parametrize("kind", KINDS)
def test_its_own_commits_stay_and_what_it_left_uncommitted_comes_on_top(
    remote: Remote, tmp_path: Path, kind: str
) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n", "kept.log": "forced\n"})
        git("add", "-f", "b.txt", "kept.log", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        own = git("rev-parse", "HEAD", cwd=tree)
        write(tree, {"c.txt": "three\n"})
        saved = made.save("the rest")
        assert made.save("again").commit == saved.commit
    assert git("rev-parse", f"{saved.commit}^", cwd=remote.path) == own
    assert saved.changed_files == ("b.txt", "c.txt", "kept.log")


def test_a_later_save_of_the_same_attempt_moves_its_reference(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = made.open()
        write(tree, {"b.txt": "two\n"})
        first = made.save("first")
        write(tree, {"b.txt": "three\n"})
        second = made.save("second")
    assert (first.ref, second.ref) == ("refs/spool/edit/1", "refs/spool/edit/1")
    assert remote.read(second.ref, "b.txt") == "three\n"


def test_without_a_change_there_is_no_reference(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"x.log": "ignored\n"})
        saved = made.save("nothing")
    assert (saved.no_change, saved.ref, saved.commit, saved.changed_files) == (True, "", remote.first, ())
    assert remote.refs() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_attempt_on_another_host_goes_on_from_the_newest_work(
    remote: Remote, tmp_path: Path, kind: str
) -> None:
    pushed(remote, tmp_path / "one", "edit", {"b.txt": "first\n"}, kind=kind)
    pushed(remote, tmp_path / "two", "edit", {"c.txt": "second\n"}, attempt=2, kind=kind)
    remote.land({"main.txt": "moved on\n"})
    with workspace(remote, tmp_path / "three", attempt=10, kind=kind) as made:
        tree = Path(made.open())
        assert made.resumed == "refs/spool/edit/2"
        assert sorted(os.listdir(tree)) == [".git", ".gitignore", "a.txt", "b.txt", "c.txt", "run.sh"]
        saved = made.save("nothing more")
    assert (saved.ref, saved.changed_files) == ("refs/spool/edit/10", ("b.txt", "c.txt"))
    with workspace(remote, tmp_path / "four", attempt=11, kind=kind, resume="fresh") as made:
        assert sorted(os.listdir(made.open())) == [".git", ".gitignore", "a.txt", "main.txt", "run.sh"]


@pytest.mark.parametrize("kind", KINDS)
def test_on_the_same_host_it_has_the_same_path_and_the_sessions(remote: Remote, tmp_path: Path, kind: str) -> None:
    with workspace(remote, tmp_path / "host", kind=kind) as first:
        before = first.open()
        write(first.home, {"session.json": "{}"})
        write(before, {"b.txt": "two\n"})
        first.save("one")
    with workspace(remote, tmp_path / "host", attempt=2, kind=kind) as second:
        assert second.open() == before
        assert os.listdir(second.home) == ["session.json"]
        write(before, {"c.txt": "three\n"})
        assert second.save("two").changed_files == ("b.txt", "c.txt")


def test_beside_an_attempt_that_still_runs_it_has_a_place_of_its_own(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was taken for dead may have frozen the attempt before."""
    monkeypatch.setattr(attempt_workspace, "LIVES_S", 0.2)
    with workspace(remote, tmp_path / "host") as frozen:
        write(frozen.open(), {"b.txt": "frozen\n"})
        with workspace(remote, tmp_path / "host", attempt=2) as made:
            tree = made.open()
            assert (tree != frozen.directory, made.returning) == (True, False)
            write(tree, {"c.txt": "x\n"})
            assert made.save("second").changed_files == ("c.txt",)
        assert frozen.save("first").ref == "refs/spool/edit/1"


def test_a_number_that_is_taken_is_never_replaced(remote: Remote, tmp_path: Path) -> None:
    pushed(remote, tmp_path / "one", "edit", {"b.txt": "of an earlier life\n"})
    ref = pushed(remote, tmp_path / "two", "edit", {"b.txt": "of this one\n"}, resume="fresh")
    assert ref == "refs/spool/edit/1.2"
    assert remote.read("refs/spool/edit/1", "b.txt") == "of an earlier life\n"
    with workspace(remote, tmp_path / "three", attempt=2) as made:
        made.open()
        assert made.resumed == "refs/spool/edit/1.2"


@pytest.mark.parametrize("task", ["a..b", "v1.lock", "x=1,+y", "ends.LOCK"])
def test_every_id_has_a_reference(remote: Remote, tmp_path: Path, task: str) -> None:
    ref = pushed(remote, tmp_path / "host", task, {"b.txt": "two\n"})
    assert list(remote.refs()) == [ref]
    with workspace(remote, tmp_path / "other", task, attempt=2) as made:
        made.open()
        assert made.resumed == ref


def test_a_merge_that_was_not_committed_keeps_both_parents(remote: Remote, tmp_path: Path) -> None:
    other = remote.land({"b.txt": "theirs\n"}, branch="other")
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("merge", "-q", "--no-commit", "--no-ff", "origin/other", cwd=tree)
        saved = made.save("merged")
    assert git("log", "-1", "--format=%P", saved.commit, cwd=remote.path).split() == [remote.first, other]


def test_a_name_of_any_bytes_is_saved_and_told_as_text(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = made.open()
        (Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9 \n.txt"))).write_text("x\n")
        saved = made.save("bytes")
    assert saved.changed_files == ("caf\\udce9 \n.txt",)
    assert "caf" in str(remote.files(saved.ref))


def test_without_a_repository_it_is_an_empty_folder(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host", kind="none", repo="") as made:
        assert os.listdir(made.open()) == []
        saved = made.save("nothing")
    assert (saved.no_change, saved.repo, saved.as_output()["ref"]) == (True, "", "")


def test_a_base_may_be_a_tag_a_reference_or_a_commit(remote: Remote, tmp_path: Path) -> None:
    git("tag", "v1", cwd=remote.clone)
    git("push", "-q", "origin", "v1", cwd=remote.clone)
    ref = pushed(remote, tmp_path / "host", "edit", {"b.txt": "two\n"})
    remote.land({"c.txt": "three\n"})
    for number, (base, seen) in enumerate({"v1": False, remote.first: False, ref: True}.items()):
        with workspace(remote, tmp_path / "host", f"t{number}", base=base) as made:
            tree = Path(made.open())
            assert (tree / "b.txt").exists() is seen
            assert not (tree / "c.txt").exists()


def test_a_base_that_is_not_there_is_said_with_those_that_are(remote: Remote, tmp_path: Path) -> None:
    with (
        workspace(remote, tmp_path / "host", base="mian") as made,
        pytest.raises(WorkspaceFailed, match=r"no branch, tag or commit mian\. Fix: name one of those it has: main"),
    ):
        made.open()


def test_a_repository_that_cannot_be_read_is_said(remote: Remote, tmp_path: Path) -> None:
    with (
        workspace(remote, tmp_path / "host", repo=str(tmp_path / "none")) as made,
        pytest.raises(WorkspaceFailed, match=r"none cannot be read here: .*Fix: check its address"),
    ):
        made.open()


def test_a_remote_that_takes_nothing_is_said_and_the_work_stays(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = made.open()
        write(tree, {"b.txt": "two\n"})
        hook = remote.path / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\necho read-only mirror >&2\nexit 1\n")
        hook.chmod(0o755)
        with pytest.raises(
            WorkspaceFailed,
            match=r"cannot be pushed to refs/spool/edit/1 of .*read-only mirror",
        ):
            made.save("do it")
    assert (Path(tree) / "b.txt").read_text() == "two\n"
    hook.unlink()
    with workspace(remote, tmp_path / "host", attempt=2) as made:
        made.open()
        assert made.resumed == "refs/spool/edit/1"
    assert remote.read("refs/spool/edit/1", "b.txt") == "two\n"


def test_a_remote_that_this_user_may_not_write_is_said_before_the_agent_begins(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not path.startswith(str(remote.path)))
    with (
        workspace(remote, tmp_path / "host") as made,
        pytest.raises(WorkspaceFailed, match=r"remote\.git/objects may not be written by this user"),
    ):
        made.open()


def test_workspaces_do_not_lie_on_the_spool(remote: Remote, tmp_path: Path) -> None:
    from spoold.agents.workspace.workspace_layout import Places
    from spoold.protocol.errors import SpoolError

    with pytest.raises(SpoolError, match=r"would lie on the spool itself"):
        Places(str(tmp_path / "spool" / "ws"), {"SPOOL_ROOT": str(tmp_path / "spool")})
    assert Places(None, {"XDG_CACHE_HOME": "/c"}).top == "/c/spoold/workspaces"


@pytest.mark.parametrize("kind", KINDS)
def test_many_attempts_on_one_host_begin_and_save_at_once(remote: Remote, tmp_path: Path, kind: str) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from tests.agents.workspace.repos import *;"
        "r = Remote.at(Path(sys.argv[1]));"
        "print(pushed(r, Path(sys.argv[2]), sys.argv[3], {sys.argv[3] + '.txt': 'x'}, kind=sys.argv[4]))"
    )
    words = [str(tmp_path), str(tmp_path / "host")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, *words, f"t{number}", kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    told = [process.communicate(timeout=120) for process in running]
    assert [out.strip() for out, _ in told] == [f"refs/spool/t{number}/1" for number in range(6)], told
    assert all(remote.files(f"refs/spool/t{number}/1")[-1] == f"t{number}.txt" for number in range(6))


def test_a_full_name_of_a_branch_is_that_branch_whatever_others_are_called(remote: Remote, tmp_path: Path) -> None:
    other = remote.land({"other.txt": "x\n"}, "other")
    git("update-ref", "refs/heads/refs/heads/main", other, cwd=remote.path)
    for base in ("main", "refs/heads/main"):
        with workspace(remote, tmp_path / "host", f"of-{base.count('/')}", base=base) as made:
            made.open()
            assert made._record.base == remote.first


def test_what_is_left_out_of_a_very_deep_folder_is_told_in_a_short_line(remote: Remote, tmp_path: Path) -> None:
    """C5: each line had the whole path, of 12,000 characters."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        deep(tree / "deep", 90, "d" * 120)
        saved = made.save("work")
        assert "b.txt" in remote.files(saved.ref)
    assert saved.left_out
    for line in saved.left_out:
        assert len(line) <= 300
        assert "deep/ddd" in line
        assert " … " in line
