"""How a workspace gets its files, and our own repository beside it, in which its work is committed.

Law: what an agent may write to is never what we commit with: keep.git is ours, and the agent's own git directory is
only ever read as data.

Touches: files.
"""

from __future__ import annotations

import os
import shutil

from spoold.agents.workspace import lfs
from spoold.agents.workspace.agent_commits import Commits
from spoold.agents.workspace.git import Git, address
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.workspace_layout import Record, encoded
from spoold.system.remover import remove

# What an agent commits is pushed by us, and by nobody else.
NO_PUSH = "/nowhere/spoold-pushes-what-is-committed-here"


def tree_of(folder: str) -> str:
    """Return where the agent of a workspace works."""
    return os.path.join(folder, "tree")


def keeper(folder: str) -> Git:
    """Return git in our own repository of a workspace."""
    return Git(os.path.join(folder, "keep.git"))


def scratch_of(folder: str) -> str:
    """Return where the program that saves a workspace keeps what is its own."""
    return os.path.join(folder, "saving")


def home_of(folder: str) -> str:
    """Return the private home of a workspace's agent."""
    return os.path.join(folder, "home")


def besides(folder: str) -> list[str]:
    """Return the folders beside the tree in which an agent may have made a worktree: its home, and what one without
    a sandbox made there. Errors: OSError."""
    ours = {tree_of(folder), scratch_of(folder), keeper(folder).directory}
    with os.scandir(folder) as found:
        return sorted(one.path for one in found if one.is_dir(follow_symlinks=False) and one.path not in ours)


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
    git = _clone_at(mirror, tree, author)
    fill(git, (mirror.directory,), (tree,), "checkout", "--quiet", "--no-track", "-B", branch, start)


def submodule(mirror: Mirror, folder: str, path: str, commit: str, author: str) -> None:
    """Make the repository of a submodule, at its commit, in the folder that its repository keeps for it.

    Errors: GitFailed, OSError.
    """
    tree = os.path.join(tree_of(folder), path)
    git = _clone_at(mirror, tree, author)
    fill(git, (mirror.directory,), (tree,), "checkout", "--quiet", "--detach", commit)


def _clone_at(mirror: Mirror, tree: str, author: str) -> Git:
    """Make a repository in an empty folder that borrows the mirror's objects. Errors: GitFailed, OSError."""
    outside = Git(tree=tree)
    outside("init", "--quiet", "--template=", ".")
    own = os.path.join(tree, ".git")
    # A sandbox shows it read only if it is there.
    os.mkdir(os.path.join(own, "hooks"))
    borrow(own, mirror.objects)
    git = Git(own, tree=tree)
    for name, value in {
        "user.name": author,
        "user.email": address(author),
        "gc.auto": "0",
        "remote.origin.url": mirror.repo,
        "remote.origin.pushurl": NO_PUSH,
        "remote.origin.fetch": f"+refs/heads/*:{HEADS}*",
    }.items():
        git("config", name, value)
    words = ("fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-write-fetch-head", "--", mirror.directory)
    git(*words, f"+{HEADS}*:{HEADS}*", "+refs/tags/*:refs/tags/*")
    for name, value in lfs.filters().items():
        git("config", name, value)
    return git


def worktree(git: Git, folder: str, branch: str, start: str) -> str:
    """Make a worktree of the mirror, under its lock; returns its git directory. Errors: GitFailed."""
    tree = tree_of(folder)
    words = ("worktree", "add", "--quiet", "--force", "--no-track", "--no-checkout")
    git(*words, "-B", branch, tree, start)
    admin = Git(tree=tree)("rev-parse", "--absolute-git-dir").out.strip()
    filling = Git(admin, tree=tree, held=git.held)
    fill(filling, (), (git.directory, tree), "read-tree", "--reset", "-u", start)
    return admin


def fill(git: Git, reads: tuple[str, ...], writes: tuple[str, ...], *words: str) -> None:
    """Run a command that writes files of a commit which an agent may have made, in a cage. Errors: GitFailed."""
    programs = tuple(filter(None, [lfs.program()]))
    git.set(lfs.filters()).caged(reads=reads, writes=writes, programs=programs)(*words)


def keep(mirror: Mirror, folder: str, record: Record) -> None:
    """Make our own repository of a workspace, and what saves it know the times of its files, at the start."""
    git = keeper(folder)
    os.mkdir(git.directory, mode=0o700)
    git("init", "--quiet", "--bare", "--template=")
    borrow(git.directory, mirror.objects)
    own = record.admin or os.path.join(tree_of(folder), ".git")
    work = os.path.join(scratch_of(folder), "work.git")
    os.makedirs(work, mode=0o700)
    shutil.copyfile(os.path.join(own, "index"), os.path.join(work, "index"))


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


def blob(git: Git, commit: str, name: str) -> bytes | None:
    """Return the content of a file of a commit, through links as long as they stay in it; None where there is none.

    Errors: GitFailed.
    """
    path = os.path.normpath(name)
    if "\n" in path or path.startswith(("/", "..")):
        return None
    asked = git(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", "--follow-symlinks", given=f"{commit}:{path}\n"
    )
    kind, _, found = asked.out.strip().partition(" ")
    if kind != "blob":
        return None
    return git("cat-file", "blob", found).out.encode("utf-8", "surrogateescape")


def branch_of(task: str, attempt: int) -> str:
    """Return the name of an attempt's branch."""
    return f"spool/{encoded(task)}/{attempt}"


def borrow(directory: str, *objects: str) -> None:
    """Have a git directory read the objects of these folders, too. Errors: OSError."""
    os.makedirs(os.path.join(directory, "objects", "info"), exist_ok=True)
    with open(os.path.join(directory, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
        file.write("".join(f"{path}\n" for path in objects))
