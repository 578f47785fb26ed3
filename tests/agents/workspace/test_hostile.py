"""An agent may write anything in its workspace; none of it runs outside of it, and nothing of others is published."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("how", ["gone", "file", "garbage", "link"])
def test_the_files_are_saved_whatever_became_of_its_git_directory(remote: Remote, tmp_path: Path, how: str) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        write(tree, {"b.txt": "two\n"})
        own = tree / ".git"
        if how == "garbage":
            (own / "HEAD").write_bytes(b"\xff\x00")
            shutil.rmtree(own / "refs")
        else:
            own.rename(tmp_path / "was")
        if how == "file":
            own.write_text(f"gitdir: {tmp_path}/was\n")
        elif how == "link":
            own.symlink_to(tmp_path / "was")
        saved = made.save("saved")
    assert remote.files(saved.ref) == ["a.txt", "b.txt"]


def test_a_repository_within_is_left_out_and_said(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        for name in ("inner", "deep/er [x]", "ignored"):
            (tree / name).mkdir(parents=True)
            git("init", "-q", cwd=tree / name)
            write(tree / name, {"x.txt": "x\n"})
        write(tree, {"b.txt": "two\n", ".gitignore": "ignored\n"})
        saved = made.save("saved")
    assert remote.files(saved.ref) == [".gitignore", "a.txt", "b.txt"]
    assert sorted(saved.left_out) == [
        "deep/er [x]: it is a git repository of its own",
        "inner: it is a git repository of its own",
    ]


def test_commits_on_another_branch_are_said(remote: Remote, tmp_path: Path) -> None:
    with workspace(remote, tmp_path / "host") as made:
        tree = Path(made.open())
        git("checkout", "-q", "-b", "side", cwd=tree)
        write(tree, {"side.txt": "x\n"})
        git("add", "-A", cwd=tree)
        git("commit", "-q", "-m", "side", cwd=tree)
        git("checkout", "-q", "spool/edit/1", cwd=tree)
        write(tree, {"b.txt": "two\n"})
        saved = made.save("saved")
    assert saved.left_out == ("refs/heads/side: 1 of its commits are in no other place",)
    assert saved.as_output()["left_out"]


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
