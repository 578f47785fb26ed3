"""Commits everything that is in a workspace: the agent's own commits, and all its files as they are.

Law: all files count but those that the repository ignores. A repository within the workspace is left out, and said:
git would note only its name. Nothing in the workspace decides which program runs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from spoold.agents.workspace.checkout import commits_of, keeper, tree_of
from spoold.agents.workspace.commits import Commits
from spoold.agents.workspace.git import Git, GitFailed, commit_of, is_ancestor
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.places import Record
from spoold.protocol.errors import legible
from spoold.system.walking import walk

_TOLD_MAX = 20


@dataclass(frozen=True, slots=True)
class Committed:
    """What was committed. changed_files: against the base, in order; left_out: what is not in it, as sentences."""

    commit: str
    changed_files: tuple[str, ...]
    left_out: tuple[str, ...]


def commit_all(mirror: Mirror, folder: str, record: Record, message: str) -> Committed:
    """Commit what the workspace holds now. Errors: GitFailed, OSError."""
    found = commits_of(folder, record, mirror)
    git, left_out = keeper(folder), []
    if found.trusted():
        git = git.reading(os.path.join(found.shared, "objects"))
    else:
        found = Commits("", "")
        left_out.append("its own commits: its .git is not as it was made; its files are saved")
    head = commit_of(git, [one for one in (found.head(), record.start) if one]) or record.start
    before = commit_of(git, ["refs/heads/saved"])
    if before is not None and is_ancestor(git, head, before):
        head = before  # the agent has not committed since the last save: this one goes on top of it
    working = git.with_tree(tree_of(folder), os.path.join(git.directory, "index")).by(record.profile)
    tree, untold = _tree(working, tree_of(folder), head)
    left_out += untold
    merged = [one for one in found.merging() if one != head and commit_of(git, [one])]
    commit = head
    if merged or tree != git("rev-parse", "--verify", f"{head}^{{tree}}").out.strip():
        parents = [word for one in (head, *merged) for word in ("-p", one)]
        commit = working("commit-tree", tree, *parents, "-F", "-", given=message).out.strip()
    git("update-ref", "refs/heads/saved", commit)
    if record.config.kind == "clone":
        left_out += _elsewhere(Git(mirror.directory).reading(os.path.join(git.directory, "objects")), found, commit)
    return Committed(commit, changed(git, record.base, commit), tuple(map(legible, left_out[:_TOLD_MAX])))


def changed(git: Git, base: str, commit: str) -> tuple[str, ...]:
    """Return the files that differ between a commit and where it left the base. Errors: GitFailed."""
    fork = git.ask("merge-base", base, commit).out.split()
    names = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", (fork or [base])[0], commit).names
    return tuple(map(legible, names))  # a result is text, and a name may be any bytes


def _tree(git: Git, tree: str, head: str) -> tuple[str, list[str]]:
    """Return the tree of all files, and what could not be read."""
    try:
        git("read-tree", "-m", head)
    except GitFailed:
        git("read-tree", head)  # the index is of no use, as after a power cut; this one reads every file again
    inner, links = _repositories(tree), _links(git)
    if inner:
        ignored = git.ask("check-ignore", "-z", "--stdin", given="\0".join(inner))
        inner = [path for path in inner if path not in ignored.names]
    but = [f":(exclude,top,literal){path}" for path in inner]
    done = git.ask("add", "--all", "--ignore-errors", "--", ":(top)", *but)
    left_out = [f"{path}: it is a git repository of its own" for path in inner if path not in links]
    if done.code:
        unread = [line for line in done.errors.splitlines() if line.startswith(("error:", "fatal:"))]
        if not unread or done.code != 1:
            raise GitFailed(("add", "--all"), done.code, done.errors)
        left_out += unread
    return git("write-tree").out.strip(), left_out


def _repositories(tree: str) -> list[str]:
    """Return the folders below the tree that are repositories."""
    found = []
    for folder in walk(tree):
        if folder.path and ".git" in (*folder.folders, *folder.files):
            found.append(folder.path)
            folder.folders.clear()
        elif ".git" in folder.folders:
            folder.folders.remove(".git")
    return found


def _links(git: Git) -> set[str]:
    """Return the paths that the commit has as submodules."""
    rows = git("ls-files", "--stage", "-z").names
    return {row.partition("\t")[2] for row in rows if row.startswith("160000 ")}


def _elsewhere(git: Git, found: Commits, commit: str) -> list[str]:
    """Return the branches with commits that are neither saved nor on the remote."""
    if not found.shared:
        return []
    told, reading = [], git.reading(os.path.join(found.shared, "objects"))
    for name, one in found.branches().items():
        if one == commit or commit_of(reading, [one]) is None:
            continue
        count = reading("rev-list", "--count", one, "--not", commit, f"--glob={HEADS}*").out.strip()
        if count != "0":
            told.append(f"{name}: {count} of its commits are in no other place")
    return told
