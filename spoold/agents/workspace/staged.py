"""What an agent has staged: its index, of which git reads a copy.

For git a file that is in an index is not ignored, whatever `.gitignore` says. So each name of the index is a file of
the work, and what was staged is work, too, where the file has other content since then, or is gone.

Law: the index is the agent's: it is read as data, and a name in it that leads out of the tree, or into a git
directory, is none. One that is there and cannot be read is an error that says so.

Touches: files.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from spoold.agents.workspace import lfs
from spoold.agents.workspace.git import Git, GitFailed

LINK = "160000"
# Of an index, or of the one that it shares (bytes).
_INDEX_MAX = 1 << 30
_SHARED = re.compile(r"sharedindex\.[0-9a-f]{40,64}")
_COPY = "index-staged"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an index. stage: 0, or 1 to 3 of a conflict; hidden: whether git takes its file for unchanged where
    it is not there, as in a sparse checkout."""

    mode: str
    content: str
    stage: int
    path: str
    hidden: bool


def staged(git: Git, own: str) -> list[Entry] | None:
    """Return the entries of the index in a git directory; None where there is none. Errors: GitFailed where it cannot
    be read."""
    if not own or not os.path.lexists(os.path.join(own, "index")):
        return None
    try:
        with _copied(own, git.directory) as copy:
            rows = Git(git.directory, index=copy)("ls-files", "--stage", "-t", "-z").names
    except OSError as error:
        raise GitFailed(("ls-files", "--stage"), 1, error.strerror or str(error)) from error
    return [one for row in rows if leads_in((one := _entry(row)).path)]


def entries(git: Git) -> dict[str, tuple[str, str]]:
    """Return mode and content of each path of our own index. Errors: GitFailed."""
    found = map(_entry, git("ls-files", "--stage", "-t", "-z").names)
    return {one.path: (one.mode, one.content) for one in found}


def of_tree(git: Git, commit: str) -> dict[str, tuple[str, str]]:
    """Return mode and content of each path of a commit or tree. Errors: GitFailed."""
    rows = (row.partition("\t") for row in git("ls-tree", "-r", "-z", commit).names)
    return {path: (about.split()[0], about.split()[2]) for about, _, path in rows}


def is_file(tree: str, path: str) -> bool:
    """Whether a path is a file or a link, with no link on the way to it."""
    kind = _kind(tree, path)
    return kind is not None and (stat.S_ISREG(kind) or stat.S_ISLNK(kind))


def restored(git: Git, found: Collection[Entry], ours: Collection[str]) -> None:
    """Bring back the hidden entries whose files are not there: such a file is not removed. ours: the paths of our
    index. Errors: GitFailed."""
    hidden = [one for one in found if one.hidden and not one.stage and one.path not in ours]
    there = lfs.sizes(git, [one.content for one in hidden if one.mode != LINK]) if hidden else {}
    rows = [one for one in hidden if (one.mode == LINK or one.content in there) and _is_free(git.tree, one.path)]
    if rows:
        given = "".join(f"{one.mode} {one.content}\t{one.path}\0" for one in rows)
        git("update-index", "-z", "--index-info", given=given)


def untracked(git: Git, found: Collection[Entry], ours: Mapping[str, tuple[str, str]], start: str) -> None:
    """Take files out of our index that the agent took out of its own (`git rm --cached`), and that are ignored; one
    that has other content than at the start stays. ours: of our index; start: a commit or tree. Errors: GitFailed."""
    still = {one.path for one in found}
    gone = [path for path, one in ours.items() if path not in still and one[0] != LINK]
    before = of_tree(git, start) if gone else {}
    gone = [path for path in gone if before.get(path) == ours[path]]
    if gone:
        ignored = git.ask("check-ignore", "--no-index", "-z", "--stdin", given="\0".join(gone)).out
        git("update-index", "-z", "--force-remove", "--stdin", given=ignored)


def _entry(row: str) -> Entry:
    about, _, path = row.partition("\t")
    tag, mode, content, stage = about.split()
    return Entry(mode, content, int(stage), path, tag == "S")


def leads_in(path: str) -> bool:
    """Whether a path leads neither out of a tree nor into a git directory."""
    parts = path.split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def _is_free(tree: str, path: str) -> bool:
    """Whether nothing is at a path, and no file is on the way to it."""
    parts = path.split("/")
    if os.path.lexists(os.path.join(tree, path)):
        return False
    kinds = (_kind(tree, "/".join(parts[:end])) for end in range(1, len(parts)))
    return all(kind is None or stat.S_ISDIR(kind) for kind in kinds)


def _kind(tree: str, path: str) -> int | None:
    """Return the mode of what is at a path, with no link on the way to it; None for nothing."""
    at = tree
    try:
        for part in (*path.split("/")[:-1],):
            at = os.path.join(at, part)
            if not stat.S_ISDIR(os.lstat(at).st_mode):
                return None
        return os.lstat(os.path.join(tree, path)).st_mode
    except OSError:
        return None


@contextmanager
def _copied(own: str, into: str) -> Iterator[str]:
    """Yield a copy of an index, with those that it may share its entries with. Errors: OSError, also for a torn one:
    git would read it."""
    made = [(os.path.join(own, "index"), os.path.join(into, _COPY))]
    made += [
        (os.path.join(own, name), os.path.join(into, name)) for name in os.listdir(own) if _SHARED.fullmatch(name)
    ]
    try:
        for source, copy in made:
            with lfs.opened(source) as file, open(copy, "wb") as new:
                if (size := os.fstat(file.fileno()).st_size) > _INDEX_MAX:
                    raise OSError(f"it has more than {_INDEX_MAX >> 20} MiB")
                _copy(file, new, size)
        yield made[0][1]
    finally:
        for _, copy in made:
            with suppress(FileNotFoundError):
                os.unlink(copy)


def _copy(file: IO[bytes], new: IO[bytes], size: int) -> None:
    """Copy an index that ends with the hash of all that is before; git may write zeros there (`index.skipHash`)."""
    data = file.read(size)
    new.write(data)
    hashes = (hashlib.sha1(data[:-20], usedforsecurity=False), hashlib.sha256(data[:-32]))
    if not data.endswith((*(one.digest() for one in hashes), bytes(20))):
        raise OSError("it is torn")
