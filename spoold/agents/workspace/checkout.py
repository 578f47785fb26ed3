"""How a workspace gets its files, and our own repository beside it, in which its work is committed.

Law: what an agent may write to is never what we commit with: keep.git is ours, and the agent's own git directory is
only ever read as data.

Touches: files.
"""

from __future__ import annotations

import os
import shutil

from spoold.agents.workspace.commits import Commits
from spoold.agents.workspace.git import Git, address
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.places import Record, encoded
from spoold.system.remover import remove


def tree_of(folder: str) -> str:
    """Return where the agent of a workspace works."""
    return os.path.join(folder, "tree")


def keeper(folder: str) -> Git:
    """Return git in our own repository of a workspace."""
    return Git(os.path.join(folder, "keep.git"))


def commits_of(folder: str, record: Record, mirror: Mirror) -> Commits:
    """Return what reads the agent's own commits."""
    if record.config.kind == "worktree":
        return Commits(record.admin, mirror.directory)
    own = os.path.join(tree_of(folder), ".git")
    return Commits(own, own, mirror.objects)


def clone(mirror: Mirror, folder: str, branch: str, start: str, author: str) -> None:
    """Make a repository that borrows the mirror's objects, with a branch at this commit.

    Errors: GitFailed, OSError.
    """
    tree = tree_of(folder)
    os.mkdir(tree)
    outside = Git(tree=tree)
    outside("init", "--quiet", "--template=", ".")
    own = os.path.join(tree, ".git")
    # A sandbox shows it read only if it is there.
    os.mkdir(os.path.join(own, "hooks"))
    _borrow(own, mirror)
    git = Git(own, tree=tree)
    for name, value in {
        "user.name": author,
        "user.email": address(author),
        "gc.auto": "0",
        "remote.origin.url": mirror.repo,
        "remote.origin.fetch": f"+refs/heads/*:{HEADS}*",
    }.items():
        git("config", name, value)
    words = ("fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-write-fetch-head", "--", mirror.directory)
    git(*words, f"+{HEADS}*:{HEADS}*", "+refs/tags/*:refs/tags/*")
    git("checkout", "--quiet", "--no-track", "-B", branch, start)


def worktree(git: Git, folder: str, branch: str, start: str) -> str:
    """Make a worktree of the mirror, under its lock; returns its git directory. Errors: GitFailed."""
    tree = tree_of(folder)
    git("worktree", "add", "--quiet", "--force", "--no-track", "-B", branch, tree, start)
    return Git(tree=tree)("rev-parse", "--absolute-git-dir").out.strip()


def keep(mirror: Mirror, folder: str, record: Record) -> None:
    """Make our own repository of a workspace: at the start, and knowing the times of its files."""
    git = keeper(folder)
    os.mkdir(git.directory, mode=0o700)
    git("init", "--quiet", "--bare", "--template=")
    _borrow(git.directory, mirror)
    own = record.admin or os.path.join(tree_of(folder), ".git")
    shutil.copyfile(os.path.join(own, "index"), os.path.join(git.directory, "index"))


def moved(mirror: Mirror, folder: str) -> None:
    """Tell the mirror that the folder of a worktree has another path now. Errors: GitFailed."""
    with mirror.locked() as git:
        git("worktree", "repair", tree_of(folder))


def forget(mirror: Mirror, record: Record) -> None:
    """Take a worktree whose folder is gone off the mirror, with its branch. Errors: GitFailed, OSError."""
    with mirror.locked() as git:
        # Not `git worktree prune`: another worktree may be on its way to another path just now.
        if os.path.dirname(record.admin) == os.path.join(mirror.directory, "worktrees"):
            remove(record.admin)
        git.ask("update-ref", "-d", f"refs/heads/{branch_of(record.task, record.attempt)}")


def branch_of(task: str, attempt: int) -> str:
    """Return the name of an attempt's branch."""
    return f"spool/{encoded(task)}/{attempt}"


def _borrow(directory: str, mirror: Mirror) -> None:
    os.makedirs(os.path.join(directory, "objects", "info"), exist_ok=True)
    with open(os.path.join(directory, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
        file.write(f"{mirror.objects}\n")
