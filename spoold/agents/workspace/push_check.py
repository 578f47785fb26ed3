"""The program that looks, before a workspace is removed, whether the remote has every byte of it.

    python -P -m spoold.agents.workspace.push_check

A Question comes on stdin; on stdout it names the files, as a JSON list, whose content no commit on the remote has. It
shares no code with `packer`: it takes the hash of each file by itself, and asks only whether there is such an object.

Law: it runs in a cage, and only looks. A file that git ignores and that no index has was never meant to be saved; any
other one that it cannot read counts as missing, and so does an index.

Touches: files, processes, the terminal.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace

from spoold.agents.workspace import lfs
from spoold.agents.workspace.agent_commits import Commits, git_of
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.worktrees import saying, worktrees
from spoold.protocol.errors import legible
from spoold.system.walking import walk

TOLD_MAX = 20
_PIECE = 1 << 20
_EMPTY = hashlib.sha1(b"blob 0\0", usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """tree: the files; own: the git directory that has their index; shared: that of its worktrees; was: where the
    folder of the workspace was when the agent worked; mirror: that of what was fetched from the remote; keeper: that
    of what was pushed; pushed: the commits that the remote was given; submodules: path of each that was fetched, and
    the objects that it borrows; scratch: a folder to write in."""

    tree: str
    own: str
    shared: str
    was: str
    mirror: str
    keeper: str
    pushed: list[str]
    submodules: dict[str, str]
    scratch: str


def serve(text: str) -> int:
    """Answer a question on stdout; returns the exit code."""
    json.dump([legible(path) for path in missing(Question(**json.loads(text)))[:TOLD_MAX]], sys.stdout)
    return 0


def missing(asked: Question) -> list[str]:
    """Return the files whose content is not on the remote, also those of other worktrees, whatever repository within
    has them. Not those of submodules: another remote has theirs. Errors: GitFailed."""
    lost, top, seen = _missing(asked), os.path.realpath(asked.tree), set[str]()
    own, elsewhere = Commits(asked.own, asked.shared), _elsewhere(asked, top)
    repositories = {"": own, **elsewhere, **_repositories(asked, top)}
    theirs = {os.path.realpath(one.shared): one for one in elsewhere.values()}
    said = [os.path.join(top, folder.path) for folder in walk(top) if ".git" in folder.files]
    while True:
        found = worktrees(top, asked.was, repositories, [*said, *saying(top)]).places
        if not (new := found.keys() - seen):
            return lost
        seen |= new
        for folder in sorted(new):
            path, one = os.path.relpath(folder, top), found[folder]
            there = replace(asked, tree=folder, own=one.own)
            kept = _checked_out(asked, one) if os.path.realpath(one.shared) in theirs else set[str]()
            lost += [f"{path}/{name}" for name in _missing(there, kept)]
            repositories |= _repositories(there, top)


def _repositories(asked: Question, top: str) -> dict[str, Commits]:
    """Return the repositories in a tree that are neither ignored nor submodules, by their paths from the top."""
    found = (os.path.join(asked.tree, path, ".git") for path in _within(asked, _submodules(asked)))
    return {os.path.relpath(os.path.dirname(own), top): Commits(own, own) for own in found}


def _elsewhere(asked: Question, top: str) -> dict[str, Commits]:
    """Return the repositories that may have remotes of their own: those of submodules, and in git directories."""
    submodules, found = _submodules(asked), dict[str, Commits]()
    for folder in walk(top):
        if ".git" in (*folder.folders, *folder.files) and f"{folder.path}/".startswith(submodules):
            own = git_of(top, folder.path)
            if own and os.path.basename(os.path.dirname(own)) != "worktrees":
                found[folder.path] = Commits(own, own, asked.submodules.get(folder.path, ""))
        folder.folders[:] = [name for name in folder.folders if name != ".git"]
    around = {"": Commits(asked.own, asked.shared), **_repositories(asked, top), **found}
    for path, one in around.items() if asked.own == asked.shared else ():
        found |= {os.path.join(path, ".git", name): inner for name, inner in one.hidden().items()}
    return found


def _checked_out(asked: Question, one: Commits) -> set[str]:
    """Return the files of the commit that is checked out in a worktree: whether its remote has that is another
    question than whether files were changed since."""
    head = one.head() if one.trusted() else None
    git = Git(os.path.join(asked.scratch, "work.git")).reading(one.objects)
    rows = git.ask("ls-tree", "-r", "-z", head).names if head else []
    return {row.partition("\t")[0].split()[2] for row in rows}


def _missing(asked: Question, kept: Collection[str] = ()) -> list[str]:
    """Return those of one tree. kept: contents that need not be on the remote. Errors: GitFailed."""
    submodules = _submodules(asked)
    found = {path: one for path, one in _hashes(asked.tree).items() if not path.startswith(submodules)}
    found = {path: one for path, one in found.items() if one not in kept}
    unknown = _unknown(asked, found)
    indices = {"": asked.own, **{f"{path}/": f"{asked.tree}/{path}/.git" for path in _within(asked, submodules)}}
    tracked, lost = set[str](), list[str]()
    for above, own in indices.items():
        rows = _index(asked, own)
        if rows is None:
            lost.append(f"{above}.git/index")
            continue
        tracked.update(f"{above}{path}" for path, _ in rows)
        rows = [(path, one) for path, one in rows if one not in kept]
        if not above:  # those of a repository within may be on its own remotes
            lost += _unknown(asked, {f"{path} as {one[:12]}": one for path, one in rows if one != _EMPTY})
    if not unknown:
        return lost
    git = Git(asked.mirror).with_tree(asked.tree, os.path.join(asked.scratch, "index-none"))
    ignored = set(git.ask("check-ignore", "-z", "--no-index", "--stdin", given="\0".join(unknown)).names)
    rest = [path for path in unknown if path not in ignored or path in tracked]
    # What git wrote otherwise than it lies here, as with other ends of lines.
    asking = [path for path in rest if "\n" not in path and found[path]]
    written_by = Git(os.path.join(asked.scratch, "work.git")).with_tree(asked.tree, git.index).set(lfs.filters())
    told = written_by.ask("hash-object", "--stdin-paths", given="".join(f"{path}\n" for path in asking)).lines
    written = dict(zip(asking, told, strict=False))
    still = set(_unknown(asked, {path: written.get(path, "") for path in rest}))
    return [*(path for path in rest if path in still), *lost]


def _within(asked: Question, submodules: tuple[str, ...]) -> list[str]:
    """Return the folders below that are repositories, and neither ignored nor submodules."""
    found = [folder.path for folder in walk(asked.tree) if folder.path and ".git" in folder.folders]
    found = [path for path in found if not f"{path}/".startswith(submodules)]
    git = Git(asked.mirror).with_tree(asked.tree, os.path.join(asked.scratch, "index-none"))
    return [*set(found).difference(git.ask("check-ignore", "-z", "--stdin", given="\0".join(found)).names)]


def _index(asked: Question, own: str) -> list[tuple[str, str]] | None:
    """Return path and content of each file in an index; None where it cannot be read."""
    copy = os.path.join(asked.scratch, "work.git", "index-looked-at")
    try:
        names = [name for name in os.listdir(own) if name.startswith("sharedindex.")]
        for name in ("index", *names):
            with lfs.opened(os.path.join(own, name)) as file, open(_beside(copy, name), "wb") as new:
                shutil.copyfileobj(file, new)
    except OSError:
        return None if os.path.lexists(os.path.join(own, "index")) else []
    done = Git(os.path.dirname(copy), index=copy).ask("ls-files", "--stage", "-z")
    for name in ("index", *names):
        os.unlink(_beside(copy, name))
    rows = [(row.partition("\t")[0].split(), row.partition("\t")[2]) for row in done.names]
    return None if done.code else [(path, about[1]) for about, path in rows if about[0] != "160000"]


def _beside(copy: str, name: str) -> str:
    return copy if name == "index" else os.path.join(os.path.dirname(copy), name)


def _submodules(asked: Question) -> tuple[str, ...]:
    """Return what the paths of files in submodules begin with: another remote has them."""
    git = Git(asked.keeper).reading(os.path.join(asked.mirror, "objects"))
    rows = [row for commit in asked.pushed for row in git("ls-tree", "-r", "-z", commit).names]
    return tuple(f"{row.partition(chr(9))[2]}/" for row in rows if row.startswith("160000 "))


def _unknown(asked: Question, found: dict[str, str]) -> list[str]:
    """Return the paths whose object neither was fetched from the remote nor is below what was pushed."""
    names = "".join(f"{one}\n" for one in dict.fromkeys(found.values()) if one)
    rows = Git(asked.mirror)("cat-file", "--batch-check=%(objectname)", given=names).lines
    there = {row for row in rows if " " not in row}
    git = Git(asked.keeper).reading(os.path.join(asked.mirror, "objects"))
    below = git("rev-list", "--objects", "--no-object-names", *asked.pushed).lines if asked.pushed else []
    there.update(below)
    return [path for path, one in found.items() if one not in there]


def _hashes(tree: str) -> dict[str, str]:
    """Return the name of the object that each file would be, by its path; '' where it cannot be read."""
    found = {}
    for folder in walk(tree):
        if ".git" in folder.folders:
            folder.folders.remove(".git")
        for name in folder.files:
            path = os.path.join(folder.path, name)
            kind = os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode
            if name == ".git" or not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
                continue  # no git has such a file
            try:
                link = stat.S_ISLNK(kind)
                found[path] = _of_link(name, folder.fd) if link else _of_file(name, folder.fd)
            except OSError:
                found[path] = ""
    return found


def _of_link(name: str, above: int) -> str:
    target = os.fsencode(os.readlink(name, dir_fd=above))
    return hashlib.sha1(b"blob %d\0" % len(target) + target, usedforsecurity=False).hexdigest()


def _of_file(name: str, above: int) -> str:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above), "rb") as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(serve(sys.stdin.read()))
