"""The program that looks, before a workspace is removed, whether the remote has every byte of it.

    python -P -m spoold.agents.workspace.proving

A Question comes on stdin; on stdout it names the files, as a JSON list, whose content no commit on the remote has. It
shares no code with `saving`: it takes the hash of each file by itself, and asks only whether there is such an object.

Law: it runs in a cage, and only looks. A file that git ignores was never meant to be saved; any other one that it
cannot read counts as missing.

Touches: files, processes, the terminal.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from dataclasses import dataclass

from spoold.agents.workspace import lfs
from spoold.agents.workspace.git import Git
from spoold.protocol.errors import legible
from spoold.system.walking import walk

TOLD_MAX = 20
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """tree: the files; mirror: the git directory of what was fetched from the remote; keeper: that of what was
    pushed; pushed: the commits that the remote was given; scratch: a folder to write in."""

    tree: str
    mirror: str
    keeper: str
    pushed: list[str]
    scratch: str


def serve(text: str) -> int:
    """Answer a question on stdout; returns the exit code."""
    json.dump([legible(path) for path in missing(Question(**json.loads(text)))[:TOLD_MAX]], sys.stdout)
    return 0


def missing(asked: Question) -> list[str]:
    """Return the files whose content is not on the remote. Errors: GitFailed."""
    submodules = _submodules(asked)
    found = {path: one for path, one in _hashes(asked.tree).items() if not path.startswith(submodules)}
    unknown = _unknown(asked, found)
    if not unknown:
        return []
    git = Git(asked.mirror).with_tree(asked.tree, os.path.join(asked.scratch, "index-none"))
    ignored = set(git.ask("check-ignore", "-z", "--no-index", "--stdin", given="\0".join(unknown)).names)
    rest = [path for path in unknown if path not in ignored]
    # What git wrote otherwise than it lies here, as with other ends of lines.
    asking = [path for path in rest if "\n" not in path and found[path]]
    written_by = Git(os.path.join(asked.scratch, "work.git")).with_tree(asked.tree, git.index).set(lfs.filters())
    told = written_by.ask("hash-object", "--stdin-paths", given="".join(f"{path}\n" for path in asking)).lines
    written = dict(zip(asking, told, strict=False))
    still = set(_unknown(asked, {path: written.get(path, "") for path in rest}))
    return [path for path in rest if path in still]


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
