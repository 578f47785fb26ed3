"""The repository in which the packer works, and what it makes there: trees and commits of what no commit has.

Law: it is the packer's own. The same is made again as the same object. What an agent named comes into a tree under
the name of its object, so that no name of the agent's can be refused.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from spoold.agents.workspace.git import Git, GitFailed, quoted, sweep
from spoold.agents.workspace.staged import Entry

# A larger file than this is packed as it is read.
_BIG_FILE = "64m"
_SETTINGS = f"""[core]
\trepositoryformatversion = 0
\tbare = true
\tcommitGraph = false
\tmultiPackIndex = false
\tbigFileThreshold = {_BIG_FILE}
\tlooseCompression = 1
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 512m
[pack]
\tcompression = 1
\tthreads = 2
\twindowMemory = 64m
"""
AMBIGUOUS = "ambiguous"
# Types of objects that are no history, and how a tree has them.
MODES = {"tree": "040000", "blob": "100644"}


def opened(folder: str) -> Git:
    """Return git in the repository of a folder, without what a killed one left there. Errors: GitFailed."""
    git = Git(os.path.join(folder, "work.git"))
    os.makedirs(git.directory, exist_ok=True)
    sweep(git.directory)
    with open(os.path.join(git.directory, "config"), "w", encoding="ascii") as file:
        file.write(_SETTINGS)
    git("init", "--quiet", "--bare", "--template=")
    return git


def borrow(git: Git, folders: Iterable[str]) -> None:
    """Have it read the objects of these folders, and of no others. Errors: OSError."""
    info = os.path.join(git.directory, "objects", "info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, "alternates"), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(f"{quoted(folder)}\n" for folder in folders))


def between(wanted: Iterable[str], known: Iterable[str]) -> str:
    """Return the input of `rev-list --stdin`: what is above these commits, and not above those."""
    return "".join([*(f"{one}\n" for one in dict.fromkeys(wanted)), *(f"^{one}\n" for one in dict.fromkeys(known))])


def tree_of(git: Git, commit: str) -> str:
    """Return the tree of a commit. Errors: GitFailed."""
    return git("rev-parse", "--verify", f"{commit}^{{tree}}").out.strip()


def empty(git: Git) -> str:
    """Return the tree of nothing. Errors: GitFailed."""
    return git("hash-object", "-t", "tree", "-w", "--stdin").out.strip()


def dated(git: Git, like: str) -> Git:
    """Return git that commits at the time of another commit: made again, the same is the same commit."""
    when = git("show", "--no-patch", "--format=%ct", like).out.strip()
    return git.at(f"@{when} +0000")


def kinds(git: Git, names: Collection[str], *, peeled: bool = False) -> list[tuple[str, str]]:
    """Return type and name of each of these objects, or of what it leads to as a tag; two times '' for one that is
    not there. Errors: GitFailed where one is torn, and is to be peeled."""
    asked = "".join(f"{one}{'^{}' * peeled}\n" for one in names)
    rows = git("cat-file", "--batch-check=%(objecttype) %(objectname)", given=asked).lines if names else []
    split = [row.split() for row in rows]
    return [(kind, one) if kind in ("commit", "tree", "blob", "tag") else ("", "") for kind, one, *_ in split]


def commits_in_full(git: Git, beginnings: Collection[str]) -> list[str]:
    """Return the whole name of the commit that begins so, for each of these; '' where there is none, AMBIGUOUS where
    there are several. Errors: GitFailed."""

    def asked(of: str) -> list[str]:
        given = "".join(f"{one}{of}\n" for one in beginnings)
        return git("cat-file", "--batch-check=%(objectname)", given=given).lines if beginnings else []

    # Asked for a commit alone, git says of several that there is none.
    rows = zip(asked("^{commit}"), asked(""), strict=True)
    return [one if " " not in one else AMBIGUOUS if plain.endswith(f" {AMBIGUOUS}") else "" for one, plain in rows]


def tree_of_entries(git: Git, found: Iterable[Entry]) -> str:
    """Return a tree of these entries, all of one stage. Errors: GitFailed."""
    index = os.path.join(git.directory, "index-kept")
    with suppress(FileNotFoundError):
        os.unlink(index)
    given = "".join(f"{one.mode} {one.content}\t{one.path}\0" for one in found)
    # What git refuses of names is found out later, name by name.
    there = Git(git.directory, index=index).set({"core.protectNTFS": "false", "core.protectHFS": "false"})
    there("update-index", "-z", "--replace", "--index-info", given=given)
    return there("write-tree").out.strip()


def tree_of_objects(git: Git, found: Mapping[str, str]) -> str:
    """Return a tree of trees and contents. found: name and type of each. Errors: GitFailed."""
    return git(
        "mktree", given="".join(f"{MODES[kind]} {kind} {one}\t{one}\n" for one, kind in found.items())
    ).out.strip()


def new_below(git: Git, tree: str, known: Sequence[str]) -> list[str]:
    """Return the objects below a tree that neither these commits have in their files. Errors: GitFailed."""
    lines = between([tree], [f"{one}^{{tree}}" for one in known])
    return git("rev-list", "--objects", "--no-object-names", "--stdin", given=lines).lines


def announced(git: Git) -> list[str]:
    """Return the paths that the files say are submodules, such as one that was added and not committed."""
    rows = git.ask("config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$").names
    return [row.partition("\n")[2].rstrip("/") for row in rows]


def changed_links(rows: Sequence[str]) -> dict[str, str]:
    """Return path and commit of each submodule in rows of `diff-tree --raw`: a row about each path, and the path."""
    return {
        path: about.split()[3] for about, path in zip(rows[::2], rows[1::2], strict=True) if about[8:14] == "160000"
    }


def is_below(path: str, folders: Collection[str]) -> bool:
    """Whether a path is below one of these folders, each of which ends with `/`."""
    return any(path[: at + 1] in folders for at, sign in enumerate(path) if sign == "/") if folders else False


def last(failed: GitFailed) -> str:
    """Return the last line of what git said."""
    return (failed.errors.strip().splitlines() or [f"git ended with {failed.code}"])[-1]
