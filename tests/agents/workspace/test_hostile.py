"""An agent may write anything in its workspace; none of it runs outside of it, and nothing of others is published."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from spoold.agents.sandbox import bwrap
from spoold.agents.workspace import agent_commits, committing, pack_request, packer
from spoold.agents.workspace.git import WorkspaceFailed
from tests.agents.workspace.kills import beside
from tests.agents.workspace.repos import Remote, git, workspace, write


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def trap(tree: Path, own: Path, mark: Path) -> None:
    """Every setting and hook that could run a program, in a git directory of the agent's."""
    program = own / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    settings = f"""
[core]
    fsmonitor = {program}
    sshCommand = {program}
    editor = {program}
    pager = {program}
    askPass = {program}
    gitProxy = {program}
    alternateRefsCommand = {program}
    hooksPath = {own}/hooks
[filter "x"]
    clean = {program}
    smudge = {program}
    process = {program}
[diff]
    external = {program}
[diff "x"]
    textconv = {program}
    command = {program}
[merge "x"]
    driver = {program}
[commit]
    gpgSign = true
[gpg]
    program = {program}
[credential]
    helper = {program}
[uploadpack]
    packObjectsHook = {program}
[url "ext::{program}"]
    insteadOf = /
[remote "origin"]
    uploadpack = {program}
    receivepack = {program}
"""
    with (own / "config").open("a") as file:
        file.write(settings)
    (own / "hooks").mkdir(exist_ok=True)
    for name in ("pre-commit", "post-checkout", "pre-push", "reference-transaction", "post-index-change"):
        shutil.copy(program, own / "hooks" / name)
    write(tree, {".gitattributes": "* filter=x diff=x merge=x\n", "b.txt": "two\n"})


def test_no_setting_and_no_hook_of_a_workspace_runs(remote: Remote, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        trap(tree, tree / ".git", mark)
        saved = made.save("trapped")
        assert not mark.exists()
        git("status", cwd=tree, check=False)
        assert mark.exists(), "the trap cannot shut: this test shows nothing"
    assert saved.changed_files == (".gitattributes", "b.txt")
    assert remote.read(saved.ref, "b.txt") == "two\n"


@pytest.mark.parametrize("where", ["HEAD", "refs/heads/pipe", "objects/pack/pack-0.idx", "worktrees/other/HEAD"])
def test_a_pipe_that_an_agent_in_a_worktree_left_holds_up_nobody(remote: Remote, tmp_path: Path, where: str) -> None:
    with workspace(remote, tmp_path / "host", kind="worktree") as made:
        tree = Path(made.open())
        mirror, worktree = (Path(git("rev-parse", f"--git-{name}", cwd=tree)) for name in ("common-dir", "dir"))
        path = worktree / where if where == "HEAD" else mirror / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with workspace(remote, tmp_path / "host", "next", kind="worktree") as following:
            assert os.listdir(following.open())


NO_COMMIT = {
    "empty": b"",
    "no text": b"\0\xff",
    "no name": b"words\n",
    "nothing": b"0" * 40,
    "absent": b"f" * 40 + b"\n",
    "long": b"ref: refs/heads/" + b"x" * 5000,
    "a loop": b"ref: HEAD",
    "out of it": b"ref: ../../../etc/passwd\n",
    "a branch that is torn": b"ref: refs/heads/torn\n",
}
SHARED = ("refs/bisect/bad", "refs/heads/mine", "refs/spool/mine", "packed-refs", "FETCH_HEAD")
TORN = [("HEAD", text) for text in NO_COMMIT] + [(place, text) for place in SHARED for text in ("no text", "absent")]


@pytest.mark.parametrize(("place", "text"), TORN)
def test_names_that_an_agent_in_a_worktree_tore_hold_up_nobody(
    remote: Remote, tmp_path: Path, place: str, text: str
) -> None:
    """Git reads all of them, also HEAD of each worktree, before it fetches."""
    with workspace(remote, tmp_path / "host", kind="worktree") as made:
        tree = Path(made.open())
        mirror, own = (Path(git("rev-parse", f"--git-{name}", cwd=tree)) for name in ("common-dir", "dir"))
        write(tree, {"b.txt": "two\n"})
        path = (own if place in ("HEAD", "refs/bisect/bad") else mirror) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        row = b" refs/tags/mine\n" if place == "packed-refs" else b""
        path.write_bytes(NO_COMMIT[text] + row)
        (mirror / "refs/heads/torn").write_bytes(b"e" * 40)
        with workspace(remote, tmp_path / "host", "next", kind="worktree") as following:
            assert os.listdir(following.open())
        saved = made.save("saved")
    assert remote.read(saved.ref, "b.txt") == "two\n"


def test_settings_that_an_agent_in_a_worktree_gave_the_mirror_do_not_last(remote: Remote, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with workspace(remote, tmp_path / "host", kind="worktree") as made:
        tree = Path(made.open())
        trap(tree, Path(git("rev-parse", "--git-common-dir", cwd=tree)), mark)
        made.save("trapped")
    with workspace(remote, tmp_path / "host", "next", kind="worktree") as made:
        made.open()
    assert not mark.exists()


def test_objects_of_another_repository_are_not_published(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    secret = Remote(tmp_path / "other", {"secret.txt": "42\n"})
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        with (tree / ".git/objects/info/alternates").open("a") as file:
            file.write(f"{secret.path}/objects\n")
        (tree / ".git/HEAD").write_text(f"{secret.first}\n")
        write(tree, {"b.txt": "two\n"})
        saved = made.save("theft")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]
    assert git("cat-file", "-t", secret.first, cwd=remote.path, check=False) == ""
    assert "its own commits" in saved.left_out[0]


@pytest.mark.parametrize("how", ["pack", "object", "objects"])
def test_a_link_among_its_objects_is_not_followed(remote: Remote, tmp_path: Path, how: str) -> None:
    (tmp_path / "other").mkdir()
    secret = Remote(tmp_path / "other", {"secret.txt": "42\n"})
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        objects = tree / ".git/objects"
        if how == "objects":
            objects.rename(tree / ".git/was")
            objects.symlink_to(secret.path / "objects")
        elif how == "pack":
            shutil.rmtree(objects / "pack", ignore_errors=True)
            (objects / "pack").symlink_to(secret.path / "objects/pack")
        else:
            (objects / secret.first[:2]).mkdir(exist_ok=True)
            found = secret.path / "objects" / secret.first[:2] / secret.first[2:]
            (objects / secret.first[:2] / secret.first[2:]).symlink_to(found)
        (tree / ".git/HEAD").write_text(f"{secret.first}\n")
        write(tree, {"b.txt": "two\n"})
        saved = made.save("theft")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("how", ["gone", "file", "garbage", "link", "without HEAD"])
def test_the_files_are_saved_whatever_became_of_its_git_directory(remote: Remote, tmp_path: Path, how: str) -> None:
    """And it is said that its commits were lost: nothing else could know of them."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        own = tree / ".git"
        if how == "garbage":
            (own / "HEAD").write_bytes(b"\xff\x00")
            shutil.rmtree(own / "refs")
        elif how == "without HEAD":
            (own / "HEAD").unlink()
        else:
            own.rename(tmp_path / "was")
        if how == "file":
            own.write_text(f"gitdir: {tmp_path}/was\n")
        elif how == "link":
            own.symlink_to(tmp_path / "was")
        saved = made.save("saved")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]
    assert any(line.startswith("its own commits") for line in saved.left_out), saved.left_out


def test_a_branch_without_a_commit_is_nothing_that_was_lost(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("checkout", "-q", "--orphan", "new", cwd=tree)
        saved = made.save("saved")
    assert not saved.left_out


def commit(folder: Path, files: Mapping[str, str], branch: str = "") -> str:
    """Commit files in a repository of an agent's; returns the commit."""
    if branch:
        git("checkout", "-q", "-b", branch, cwd=folder)
    write(folder, files)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "mine", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


def given(folder: Path, text: str, *words: str) -> str:
    """Run git with an input; returns what it printed."""
    done = subprocess.run(["git", *words], cwd=folder, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def within(tree: Path, name: str) -> Path:
    """A repository that an agent made within its workspace."""
    (tree / name).mkdir(parents=True)
    git("init", "-q", "-b", "main", cwd=tree / name)
    return tree / name


def holds(remote: Remote, ref: str, commit: str) -> bool:
    """Whether the remote has a commit below a reference."""
    return git("merge-base", "--is-ancestor", commit, ref, cwd=remote.path, check=False) == "" and bool(
        git("rev-list", "--count", f"{ref}..{commit}", cwd=remote.path) == "0"
    )


def test_the_files_of_a_repository_within_are_files_of_the_work(remote: Remote, tmp_path: Path) -> None:
    """G7: what creates a project often makes a repository of it."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        for name in ("inner", "deep/er [x]", "ignored", "inner/more"):
            write(within(tree, name), {"x.txt": "x\n", "y.log": "noise"})
        write(tree, {"b.txt": "two\n", ".gitignore": "/ignored\n*.log\n", "inner/.gitignore": "z.txt\n"})
        write(tree, {"inner/z.txt": "ignored there"})
        saved = made.save("saved")
        made.save("again")
        (tree / "inner/x.txt").unlink()
        again = made.save("removed")
    files = [".gitignore", "a.txt", "b.txt", "deep/er [x]/x.txt", "inner/.gitignore", "inner/more/x.txt"]
    assert remote.files(saved.commit) == sorted([*files, "inner/x.txt"])
    assert remote.files(again.ref) == files
    assert (saved.left_out, saved.more, saved.amiss) == ((), "", ())


def test_the_history_of_a_repository_within_comes_to_the_remote_beside_the_work(
    remote: Remote, tmp_path: Path
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "inner")
        first = commit(inner, {"x.txt": "x\n"})
        saved = made.save("saved")
        assert (saved.left_out, saved.amiss) == ((), ()), "all its files are in the work"
        side = commit(inner, {"y.txt": "y\n"}, "side")
        git("checkout", "-q", "main", cwd=inner)
        again = made.save("again")
        assert made.save("once more").amiss == again.amiss
    assert saved.as_output()["more"] == again.more == "refs/spool/edit/1.more"
    assert holds(remote, again.more, first)
    assert holds(remote, again.more, side)
    assert again.beside == (
        f"inner: commits of a repository within: {first[:12]}, below {again.more}",
        f"inner: refs/heads/side of a repository within: {side[:12]}, below {again.more}",
    )
    assert again.amiss == (f"{again.beside[1]}, which is not in the work",)
    with workspace(remote, tmp_path / "other", attempt=2) as made:
        made.open()
        assert made.resumed == "refs/spool/edit/1", "what lies beside is not taken for the work"


def test_what_is_said_of_a_name_with_a_line_break_is_one_line(remote: Remote, tmp_path: Path) -> None:
    """It wrote lines of its own into the log of the attempt."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        git("checkout", "-q", "-b", "side", cwd=tree)
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "aside", cwd=tree)
        commit = git("rev-parse", "HEAD", cwd=tree)
        git("checkout", "-q", "-", cwd=tree)
        git("branch", "-q", "-D", "side", cwd=tree)
        heads = tree / ".git" / "refs" / "heads"
        (heads / "x\nspoold.agents: done").write_text(f"{commit}\n")
        (heads / "y\nz").write_text("no commit\n")
        saved = made.save("work")
    said = (*saved.beside, *saved.left_out, *saved.amiss)
    assert "x\\nspoold.agents: done" in "".join(said), said
    assert not [line for line in said if "\n" in line]


def test_a_clone_of_another_repository_is_beside_the_work_and_not_amiss(remote: Remote, tmp_path: Path) -> None:
    """What it says of its remotes is the agent's own word: what it pushed to a folder of its own was lost."""
    (tmp_path / "other").mkdir()
    library = Remote(tmp_path / "other", {"lib.txt": "lib\n"})
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("clone", "-q", str(library.path), "lib", cwd=tree)
        own = commit(tree / "lib", {"own.txt": "own\n"}, "side")
        git("init", "-q", "--bare", str(tmp_path / "aside.git"))
        git("push", "-q", str(tmp_path / "aside.git"), "side", cwd=tree / "lib")
        git("update-ref", "refs/remotes/aside/side", own, cwd=tree / "lib")
        git("checkout", "-q", "main", cwd=tree / "lib")
        git("branch", "-D", "side", cwd=tree / "lib")
        saved = made.save("saved")
    assert (remote.files(saved.ref), saved.amiss) == (["a.txt", "lib/lib.txt"], ())
    assert holds(remote, saved.more, own)
    assert holds(remote, saved.more, library.first)


def test_a_large_clone_keeps_what_its_remotes_are_said_to_have(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    library = Remote(tmp_path / "other", {"lib.txt": str(os.urandom(3000))})
    monkeypatch.setattr(packer, "WITHIN_MAX", 2000)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("clone", "-q", str(library.path), "lib", cwd=tree)
        own = commit(tree / "lib", {"own.txt": "own\n"})
        saved = made.save("saved")
    assert saved.left_out == ()
    assert holds(remote, saved.more, own)


@pytest.mark.parametrize("how", ["annotated", "nested tag", "worktree", "remote"])
def test_a_commit_that_no_branch_names_is_beside_the_work(remote: Remote, tmp_path: Path, how: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        own = commit(tree, {"side.txt": "x\n"}, "side")
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        git("branch", "-D", "side", cwd=tree)
        if how == "worktree":
            git("worktree", "add", "-q", "--detach", str(tmp_path / "aside"), own, cwd=tree)
        elif how == "remote":
            git("update-ref", "refs/remotes/origin/side", own, cwd=tree)
        else:
            git("tag", "-a", "-m", "kept", "one", own, cwd=tree)
        if how == "nested tag":
            git("tag", "-a", "-m", "of a tag", "two", "one", cwd=tree)
            git("tag", "-d", "one", cwd=tree)
        saved = made.save("saved")
    assert holds(remote, saved.more, own)
    assert bool(saved.amiss) == (how != "remote")


def test_a_repository_within_that_cannot_be_read_is_said(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "inner")
        commit(inner, {"x.txt": "x\n"})
        (inner / ".git/objects/info/alternates").write_text("/elsewhere\n")
        torn = within(tree, "torn")
        commit(torn, {"x.txt": "y\n"})
        for path in (torn / ".git/objects").glob("??/*"):
            path.chmod(0o644)
            path.write_bytes(b"")
        write(tree, {"file/.git": "gitdir: /home\n", "file/x.txt": "x\n", "empty/.git": "", "empty/x.txt": "x\n"})
        saved = made.save("saved")
    assert sorted(line.partition(":")[0] for line in saved.left_out) == ["empty", "file", "inner", "torn"]
    assert saved.amiss == saved.left_out
    files = ["a.txt", "empty/x.txt", "file/x.txt", "inner/x.txt", "torn/x.txt"]
    assert remote.files(saved.ref) == files


def test_more_history_than_a_bound_is_not_pushed(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "WITHIN_MAX", 10)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        commit(within(Path(made.open()), "inner"), {"x.txt": "x\n"})
        saved = made.save("saved")
    assert saved.left_out == ("inner: the commits of the repository there: they have more than 0 MiB",)
    assert saved.more == ""


def test_commits_on_another_branch_and_in_the_stash_are_beside_the_work(remote: Remote, tmp_path: Path) -> None:
    """G17."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        side = commit(tree, {"side.txt": "x\n"}, "side")
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        for text in ("first", "second"):
            write(tree, {"a.txt": text})
            git("stash", "-q", cwd=tree)
        stash = [git("rev-parse", f"stash@{{{number}}}", cwd=tree) for number in (0, 1)]
        git("branch", "same", cwd=tree)
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    assert saved.beside == (
        f"the branch side: {side[:12]}, below refs/spool/edit/1.more",
        f"stash@{{0}}: {stash[0][:12]}, below refs/spool/edit/1.more",
        f"stash@{{1}}: {stash[1][:12]}, below refs/spool/edit/1.more",
    )
    assert saved.amiss == tuple(f"{line}, which is not in the work" for line in saved.beside)
    assert all(holds(remote, saved.more, one) for one in (side, *stash))
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


def test_a_branch_whose_changes_are_in_the_work_is_not_amiss(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        commit(tree, {"c.txt": "x\n"}, "before-rebase")
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        git("cherry-pick", "--no-commit", "before-rebase", cwd=tree)
        git("commit", "-q", "-m", "another message", cwd=tree)
        saved = made.save("saved")
    assert (len(saved.beside), saved.amiss) == (1, ())


@pytest.mark.parametrize("changed", ["nothing", "a file", "a commit", "the index"])
def test_a_worktree_that_an_agent_made_within_is_not_said_to_be_left_out(
    remote: Remote, tmp_path: Path, changed: str
) -> None:
    """Its files and commits were saved, and it was named as one whose commits cannot be read."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        git("worktree", "add", "-q", "-b", "side", "inner", cwd=tree)
        if changed != "nothing":
            write(tree / "inner", {"c.txt": "old\n"})
        if changed in ("a commit", "the index"):
            git("add", "-A", cwd=tree / "inner")
        if changed == "a commit":
            git("commit", "-q", "-m", "mine", cwd=tree / "inner")
        elif changed == "the index":
            write(tree / "inner", {"c.txt": "new\n"})
        saved = made.save("work")
    assert saved.left_out == ()
    inner = ["inner/a.txt", *(["inner/c.txt"] if changed != "nothing" else [])]
    assert remote.files(saved.ref) == ["a.txt", "b.txt", *inner]
    told = {"a commit": "the branch side", "the index": "inner: what was staged and is in no file: c.txt"}.get(
        changed
    )
    if told is None:
        assert (saved.beside, saved.amiss) == ((), ())
    else:
        (one,) = saved.beside
        assert told in one


def test_what_names_the_same_commit_is_named_in_one_line(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "mine", cwd=tree)
        for name in ("one", "other"):
            git("branch", name, cwd=tree)
        side = git("rev-parse", "HEAD", cwd=tree)
        git("reset", "-q", "--hard", "HEAD~1", cwd=tree)
        saved = made.save("work")
    (one,) = saved.beside
    assert one == f"the branch one, the branch other: {side[:12]}, below refs/spool/edit/1.more"
    assert saved.amiss == (f"{one}, which is not in the work",)


def test_other_branches_of_a_worktree_are_beside_the_work_where_they_are_the_agents_own(
    remote: Remote, tmp_path: Path
) -> None:
    """Only the branch of the attempt was saved."""
    with workspace(remote, tmp_path / "host", "other", kind="worktree") as other:
        theirs = commit(Path(other.open()), {"theirs.txt": "x\n"}, "theirs")
        with workspace(remote, tmp_path / "host", kind="worktree") as made:
            tree = Path(made.open())
            side = commit(tree, {"side.txt": "x\n"}, "side")
            git("checkout", "-q", "--detach", cwd=tree)
            tagged = commit(tree, {"tagged.txt": "x\n"})
            git("tag", "-a", "-m", "kept", "kept", tagged, cwd=tree)
            git("checkout", "-q", "spool/edit/1", cwd=tree)
            write(tree, {"b.txt": "two\n"})
            saved = made.save("saved")
        assert [line.partition(":")[0] for line in saved.beside] == ["the branch side", "refs/tags/kept"]
        assert all(holds(remote, saved.more, one) for one in (side, tagged))
        assert git("cat-file", "-t", theirs, cwd=remote.path, check=False) == "", "it is of another attempt"
        assert len(saved.amiss) == 2
        assert remote.files(saved.ref) == ["a.txt", "b.txt"]


def test_a_tag_that_an_agent_in_a_worktree_left_is_not_work_of_the_next_clone(remote: Remote, tmp_path: Path) -> None:
    """A clone begins with the tags of the mirror, and one who works in a worktree writes there."""
    with workspace(remote, tmp_path / "host", "first", kind="worktree") as made:
        tree = Path(made.open())
        git("checkout", "-q", "--detach", cwd=tree)
        git("tag", "theirs", commit(tree, {"theirs.txt": "x\n"}), cwd=tree)
    with workspace(remote, tmp_path / "host", "next") as made:
        tree = Path(made.open())
        assert git("tag", cwd=tree) == "theirs"
        git("tag", "mine", commit(tree, {"mine.txt": "x\n"}, "aside"), cwd=tree)
        git("checkout", "-q", "spool/next/1", cwd=tree)
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    assert not any("theirs" in line for line in (*saved.beside, *saved.amiss)), saved
    assert any("mine" in line for line in saved.beside)


@pytest.mark.parametrize("how", ["reset", "detached", "amended"])
def test_a_commit_that_only_the_log_of_head_has_is_beside_the_work(remote: Remote, tmp_path: Path, how: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = made.open()
        if how == "detached":
            git("checkout", "-q", "--detach", cwd=tree)
        write(tree, {"gone.txt": "gone\n"})
        git("add", "gone.txt", cwd=tree)
        git("commit", "-qm", "gone", cwd=tree)
        gone = git("rev-parse", "HEAD", cwd=tree)
        back = {"reset": ("reset", "-q", "--hard", "HEAD~1"), "detached": ("checkout", "-q", "-")}
        git(*back.get(how, ("commit", "-q", "--amend", "-m", "amended")), cwd=tree)
        os.unlink(Path(tree) / ".git/ORIG_HEAD") if how == "reset" else None
        saved = made.save("worked")
    assert saved.beside == (f"a commit that only the log of HEAD has: {gone[:12]}, below refs/spool/edit/1.more",)
    assert (saved.amiss, saved.left_out) == ((), ())
    assert remote.read(gone, "gone.txt") == "gone\n"


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_what_autostash_put_away_is_beside_the_work(remote: Remote, tmp_path: Path, how: str, inner: str) -> None:
    """A merge or a rebase that stops at a conflict keeps it in a file of its own, and in no reference."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open()) / inner
        if inner:
            within(tree.parent, inner)
        commit(tree, {"a.txt": "ours\n", "s.txt": "was\n"}, "ours")
        git("checkout", "-q", "-b", "theirs", cwd=tree)
        commit(tree, {"a.txt": "theirs\n"})
        git("checkout", "-q", "ours", cwd=tree)
        commit(tree, {"a.txt": "ours again\n"})
        write(tree, {"s.txt": "put away\n"})
        git(how, "--autostash", "theirs", cwd=tree, check=False)
        assert (tree / "s.txt").read_text() == "was\n"
        saved = made.save("saved")
    stashed = [line for line in saved.beside if "autostash" in line.lower()]
    assert len(stashed) == 1, saved.beside
    name = git("rev-parse", stashed[0].partition(": ")[2].rpartition(": ")[2].split(",")[0], cwd=remote.path)
    assert holds(remote, saved.more, name)
    assert remote.read(name, "s.txt") == "put away\n"
    assert any("autostash" in line.lower() for line in saved.amiss)


STATES = ("MERGE_AUTOSTASH", "ORIG_HEAD", "rebase-merge/done", "sequencer/todo", "of its own/deep/er", "AUTO_MERGE")


@pytest.mark.parametrize("seed", range(6))
def test_a_commit_that_any_file_of_a_git_directory_names_is_beside_the_work(
    remote: Remote, tmp_path: Path, seed: int
) -> None:
    """Whatever git notes there, and wherever: in the repository, in one within it, in a worktree of it."""
    chance = random.Random(f"named {seed}")
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "inner")
        commit(inner, {"i.txt": "x\n"})
        git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "aside"), cwd=tree)
        wanted = []
        for number in range(4):
            where = chance.choice((tree, inner))
            own = chance.choice((where / ".git", tree / ".git/worktrees/aside" if where is tree else where / ".git"))
            made_of = git("rev-parse", "HEAD^{tree}", cwd=where)
            name = git("commit-tree", made_of, "-m", f"lost {seed} {number}", cwd=where)
            path = own / f"{chance.choice(STATES)}.{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(chance.choice((name, f"pick {name} lost\n", f"{name}\n{'f' * 40}\n")))
            wanted.append((name, path))
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    for name, path in wanted:
        assert holds(remote, saved.more, name), path
    assert all("AUTOSTASH" in line for line in saved.amiss)


def test_files_of_a_git_directory_are_read_up_to_a_bound_and_gits_own_first(remote: Remote, tmp_path: Path) -> None:
    """An agent decides how many there are: 100,000 took a minute."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        own, names = tree / ".git", []
        for folder in ("a junk", "rebase-merge", "worktrees/x"):
            names.append(git("commit-tree", "HEAD^{tree}", "-m", folder, cwd=tree))
            (own / folder).mkdir(parents=True)
            (own / folder / "zz").write_text(names[-1])
        for number in range(agent_commits.TRACES_MAX + 1):
            (own / "a junk" / f"{number:05}").touch()
        read = agent_commits.Commits(str(own), str(own)).traces()
        assert set(names[1:]) <= read.keys()
        shutil.rmtree(own / "a junk")
        assert made.save("saved").beside


@pytest.mark.parametrize("how", ["modules/lib", "backup", "modules/a/modules/b"])
def test_a_repository_that_only_a_git_directory_has_is_beside_the_work(
    remote: Remote, tmp_path: Path, how: str
) -> None:
    """As that of a submodule which was taken out again, or of one that was moved away."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        inner = within(tree, "lib")
        first = commit(inner, {"l.txt": "x\n"})
        write(inner, {"l.txt": "stashed\n"})
        git("stash", cwd=inner)
        stashed = git("rev-parse", "refs/stash", cwd=inner)
        write(inner, {"s.txt": "staged\n"})
        git("add", "s.txt", cwd=inner)
        (tree / ".git" / how).parent.mkdir(parents=True, exist_ok=True)
        (inner / ".git").rename(tree / ".git" / how)
        shutil.rmtree(inner)
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    assert all(holds(remote, saved.more, one) for one in (first, stashed)), saved.beside
    assert any(".git/" in line and "staged" in line for line in saved.beside), saved.beside
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


def test_what_is_staged_in_another_worktree_is_beside_the_work(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "aside"), cwd=tree)
        write(tmp_path / "aside", {"f.txt": "staged there\n"})
        git("add", "f.txt", cwd=tmp_path / "aside")
        saved = made.save("saved")
    told = [line for line in saved.beside if "the worktree aside: what was staged" in line]
    assert len(told) == 1
    assert "f.txt" in told[0]
    commits = git("rev-list", saved.more, cwd=remote.path).splitlines()
    assert "staged there" in git("grep", "-h", "staged", *commits, cwd=remote.path)


@pytest.mark.parametrize("text", ["", "words", "f" * 40])
def test_a_branch_that_names_no_commit_is_said(remote: Remote, tmp_path: Path, text: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        (tree / ".git/refs/heads/lost").write_text(text)
        saved = made.save("saved")
    assert any("refs/heads/lost" in line for line in saved.left_out), saved.left_out
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


def test_files_that_are_too_large_are_named_and_cost_nothing_else(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"small.txt": "small\n", ".gitignore": "ignored\n", "within/a.txt": "a\n"})
        git("init", "-q", cwd=tree / "within")
        for name, size in (("ignored", 1 << 42), ("huge", 1 << 40), ("within/huge", 1 << 40)):
            (tree / name).touch()
            os.truncate(tree / name, size)
        saved = made.save("worked")
    assert saved.left_out == tuple(
        f"{path}: it has 1,048,576 MiB, and 4,096 MiB of a file are saved" for path in ("huge", "within/huge")
    )
    assert set(remote.files(saved.ref)) >= {"small.txt", "within/a.txt"}
    monkeypatch.setattr(committing, "caged", beside)
    monkeypatch.setattr(packer, "FILES_MAX", 5 << 20)
    with workspace(remote, tmp_path / "host", "next") as made:
        tree = Path(made.open())
        for name, size in (("a.bin", 2 << 20), ("b.bin", 4 << 20), ("c.bin", 3 << 20)):
            (tree / name).touch()
            os.truncate(tree / name, size)
        saved = made.save("worked")
    assert saved.left_out == ("b.bin: it has 4 MiB, and 5 MiB of all large files, smaller ones first",)
    assert set(remote.files(saved.ref)) >= {"a.bin", "c.bin"}


def test_work_that_is_only_beside_is_pushed_without_any_other(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        commit(tree, {"side.txt": "x\n"}, "side")
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        saved = made.save("saved")
    assert list(remote.refs()) == ["refs/spool/edit/1.more"]
    assert (saved.no_change, len(saved.amiss)) == (True, 1)


def test_branches_that_are_torn_or_too_many_are_said(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "TIPS_MAX", 1)
    monkeypatch.setattr(committing, "caged", beside)
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        for name in ("one", "two"):
            commit(tree, {f"{name}.txt": name}, name)
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        saved = made.save("many")
        assert saved.left_out == ("refs/heads/two: more branches than 1 with commits of their own",)
        blob = git("rev-parse", "one:one.txt", cwd=tree)
        (tree / ".git/objects" / blob[:2] / blob[2:]).unlink()
        monkeypatch.setattr(packer, "TIPS_MAX", 10)
        saved = made.save("torn")
    assert saved.left_out[0].startswith("one.txt: its content is missing or torn, in 2 commits such as ")
    assert remote.files(f"{saved.more}^2") == ["a.txt", "two.txt"], "all else of both branches is there"


def test_commits_that_are_torn_are_made_anew_without_what_is_missing(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        commit(tree, {"b.txt": "first\n"})
        blob = git("rev-parse", "HEAD:b.txt", cwd=tree)
        write(tree, {"b.txt": "second\n"})
        (tree / ".git/objects" / blob[:2] / blob[2:]).unlink()
        commit(tree, {"c.txt": "x\n"})
        saved = made.save("saved")
    assert saved.left_out[0].startswith("b.txt: its content is missing or torn, in 1 commit such as ")
    assert remote.files(saved.ref) == ["a.txt", "b.txt", "c.txt"]
    assert git("rev-list", "--count", f"{remote.first}..{saved.ref}", cwd=remote.path) == "2"


def test_commits_that_no_repository_should_take_are_left_out(remote: Remote, tmp_path: Path) -> None:
    """A tree with `.git` in it would write into the repository of whoever checks it out."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        blob = git("hash-object", "-w", "a.txt", cwd=tree)
        inner = given(tree, f"100644 blob {blob}\tconfig\n", "mktree")
        top = given(tree, f"040000 tree {inner}\t.git\n", "mktree")
        evil = git("commit-tree", top, "-p", "HEAD", "-m", "evil", cwd=tree)
        head = git("commit-tree", "HEAD^{tree}", "-p", evil, "-m", "on top of it", cwd=tree)
        (tree / ".git/HEAD").write_text(f"{head}\n")
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    assert "hasDotgit" in saved.left_out[0]
    assert saved.left_out[0].endswith(f", in 1 commit such as {evil[:12]}")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]
    assert git("log", "--format=%s", f"{remote.first}..{saved.ref}~1", cwd=remote.path).split("\n") == [
        "on top of it",
        "evil",
    ]


@pytest.mark.parametrize("name", [".gitattributes", "deep/.gitignore"])
def test_a_pipe_in_the_place_of_what_git_reads_holds_nothing_up(remote: Remote, tmp_path: Path, name: str) -> None:
    """G4."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n", "deep/c.txt": "x\n"})
        os.mkfifo(tree / name)
        saved = made.save("saved")
    assert saved.left_out == (f"{name}: it leads to no file, and git would have waited there; it was removed",)
    assert remote.files(saved.ref) == ["a.txt", "b.txt", "deep/c.txt"]


def test_one_that_makes_pipes_faster_than_they_are_removed_is_said(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "_unblocked", lambda tree, paths: [f"{path}: again" for path in paths])
    with workspace(remote, tmp_path / "host") as made:
        os.mkfifo(Path(made.open()) / ".gitignore")
        with pytest.raises(WorkspaceFailed, match=r"something goes on writing in it: .*\.gitignore: again"):
            made.save("saved")


@pytest.mark.parametrize("name", ["refs/heads", "refs", "logs", "objects/pack/x.pack", "packed-refs"])
def test_a_link_in_its_git_directory_leads_nowhere(remote: Remote, tmp_path: Path, name: str) -> None:
    """G4: `ln -s / .git/refs/heads` made the host read all its files."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        path = tree / ".git" / name
        path.parent.mkdir(exist_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        path.symlink_to("/")
        saved = made.save("saved")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("walls", [True, False])
def test_no_filter_of_this_machine_runs_on_what_an_agent_wrote(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walls: bool
) -> None:
    """G5, G35: git-lfs is a filter of the system, and a user's own settings are no part of the work."""
    if not walls:
        monkeypatch.setattr(bwrap, "_walls", lambda: None)
    mark, settings = tmp_path / "ran", tmp_path / "settings"
    settings.write_text(
        f'[filter "lfs"]\n clean = touch {mark}; cat\n smudge = touch {mark}; cat\n required = true\n'
        f"[core]\n excludesFile = {tmp_path}/excludes\n autocrlf = true\n attributesFile = {tmp_path}/attributes\n"
    )
    (tmp_path / "excludes").write_text("*.txt\n")
    (tmp_path / "attributes").write_text("* filter=lfs\n")
    for name in ("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"):
        monkeypatch.setenv(name, str(settings))
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        (tree / "b.txt").write_bytes(b"two\r\n")
        write(tree, {".gitattributes": "*.bin filter=lfs\n", "c.bin": "big\n"})
        saved = made.save("saved")
    for kind in ("clone", "worktree"):
        with workspace(remote, tmp_path / "other", attempt=2, kind=kind, task=f"t{kind}", base=saved.ref) as made:
            assert (Path(made.open()) / "c.bin").read_text() == "big\n"
    assert not mark.exists()
    assert remote.files(saved.ref) == [".gitattributes", "a.txt", "b.txt", "c.bin"]
    blob = subprocess.run(
        ["git", "cat-file", "blob", f"{saved.ref}:b.txt"], cwd=remote.path, stdout=subprocess.PIPE, check=True
    )
    assert blob.stdout == b"two\r\n"


def test_what_a_killed_save_left_holds_no_other_up(remote: Remote, tmp_path: Path) -> None:
    """G9."""
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        folder = tree.parent
        for name in ("saving/work.git/index.lock", "saving/out/pack-x.pack", "keep.git/refs/heads/saved.lock"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        (folder / "keep.git/objects/pack").mkdir(exist_ok=True)
        (folder / "keep.git/objects/pack/tmp_pack_x").touch()
        (folder / "saving/work.git/index").write_bytes(b"torn")
        saved = made.save("saved")
        assert not (folder / "keep.git/objects/pack/tmp_pack_x").exists()
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("said", ["", "{}", "[]", '{"commit": "../../etc"}', "pipe", "link", "none"])
def test_what_the_program_in_the_cage_leaves_is_data_of_a_stranger(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def run(program: str, request: pack_request.Request, reads: tuple[str, ...], scratch: str) -> str:
        out = Path(scratch, "out")
        out.mkdir(exist_ok=True)
        (out / "made.json").unlink(missing_ok=True)
        if said == "pipe":
            os.mkfifo(out / "made.json")
        elif said == "link":
            (out / "made.json").symlink_to(remote.path / "config")
        elif said != "none":
            (out / "made.json").write_text(said)
        return ""

    monkeypatch.setattr(committing, "caged", run)
    with workspace(remote, tmp_path / "host") as made:
        write(made.open(), {"b.txt": "two\n"})
        with pytest.raises((WorkspaceFailed, OSError)):
            made.save("saved")
    assert remote.refs() == {}


def test_a_workspace_whose_folder_is_a_link_now_is_not_read(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        tree.rename(tmp_path / "was")
        tree.symlink_to("/etc")
        with pytest.raises(OSError, match="is no folder any more"):
            made.save("saved")
    assert remote.refs() == {}


def test_what_cannot_be_read_is_said_and_the_rest_is_saved(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n", "closed.txt": "x\n"})
        (tree / "closed.txt").chmod(0)
        os.mkfifo(tree / "pipe")
        saved = made.save("saved")
    if os.geteuid() == 0:
        assert remote.files(saved.ref) == ["a.txt", "b.txt", "closed.txt"]
    else:
        assert remote.files(saved.ref) == ["a.txt", "b.txt"]
        assert any("closed.txt" in line for line in saved.left_out)
