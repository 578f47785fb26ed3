"""Objects of git as they are, also those that git itself refuses: reads, takes apart and writes them.

Law: what is read counts only if it is what its name says. Nothing here stops at one that is torn, missing or made by
no git. Only the program in the cage uses it.

Touches: files.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

from spoold.agents.workspace.git import Git, GitFailed

# A commit, tree or tag that is larger (bytes) is read by nobody here.
READ_MAX = 64 << 20
# Each object at which git dies costs a new process; so many such are looked for.
DEATHS_MAX = 1000
_PIECE = 1 << 20
_KIND, _MODE = 0o170000, re.compile(rb"[0-7]{1,11}")
_NAMED = re.compile(rb"(tree|parent|object) ([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a tree. mode: as git writes it; name: any bytes but NUL; one: the object."""

    mode: bytes
    name: bytes
    one: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder."""
        return self.mode == b"40000"

    @property
    def is_link(self) -> bool:
        """Whether it is a submodule, whose commit is elsewhere."""
        return self.mode == b"160000"

    @property
    def order(self) -> bytes:
        """By which entries are sorted."""
        return self.name + b"/" * self.is_tree


@dataclass(frozen=True, slots=True)
class Raw:
    """A commit. tree: '' for none; parents: in order; header: its lines but these; text: its message."""

    tree: str
    parents: tuple[str, ...]
    header: tuple[bytes, ...]
    text: bytes


class Reader:
    """Reads single objects, one after the other; to be closed."""

    def __init__(self, git: Git) -> None:
        self._git, self._stack, self._deaths = git, ExitStack(), 0
        self._asks: IO[bytes] | None = None
        self._said: IO[bytes] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *of: object) -> None:
        self._end()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return type and content of an object; None for one that is not what its name says, or is no commit, tree or
        tag. Errors: GitFailed where git cannot be run."""
        if self._deaths > DEATHS_MAX:
            return None
        if self._said is None:
            self._begin()
        assert self._asks is not None
        assert self._said is not None
        try:
            self._asks.write(f"{name}\n".encode())
            self._asks.flush()
            words = self._said.readline().split()
        except BrokenPipeError:
            words = []
        if len(words) == 2:  # "missing"
            return None
        if len(words) != 3:
            return self._died()
        size, kind = int(words[2]), words[1].decode()
        if kind == "blob" or size > READ_MAX:
            return None if _skipped(self._said, size + 1) else self._died()
        data = self._said.read(size)
        if len(data) != size or not self._said.read(1):
            return self._died()
        return (kind, data) if name_of(kind, data) == name else None

    def _begin(self) -> None:
        asked, asks = os.pipe()
        try:
            self._said = self._stack.enter_context(self._git.piped("cat-file", "--batch", given=asked))
        finally:
            os.close(asked)
        self._asks = self._stack.enter_context(os.fdopen(asks, "wb"))

    def _died(self) -> tuple[str, bytes] | None:
        self._deaths += 1
        self._end()
        return None

    def _end(self) -> None:
        stack, self._stack = self._stack, ExitStack()
        self._asks = self._said = None
        with suppress(GitFailed, BrokenPipeError):
            stack.close()


def not_whole(git: Git, names: Iterable[str]) -> set[str]:
    """Return those of these names that are no blob with the content that the name says. Errors: GitFailed."""
    left, bad = list(names), set[str]()
    for _ in range(DEATHS_MAX):
        if not left:
            return bad
        at, asked = 0, "".join(f"{one}\n" for one in left)
        with suppress(GitFailed), git.piped("cat-file", "--batch", "--buffer", given=asked) as said:
            for found in _blobs(said):
                if found != left[at]:
                    bad.add(left[at])
                at += 1
        bad.update(left[at : at + 1])  # git died there
        left = left[at + 1 :]
    return bad | set(left)


def _blobs(said: IO[bytes]) -> Iterator[str]:
    """Yield the name that each content in an output of `cat-file --batch` has; '' for what is no blob."""
    while words := said.readline().split():
        if len(words) != 3:
            yield ""
            continue
        size = int(words[2])
        digest = hashlib.sha1(b"%s %d\0" % (words[1], size), usedforsecurity=False)
        while size and (piece := said.read(min(size, _PIECE))):
            digest.update(piece)
            size -= len(piece)
        if size or not said.read(1):
            return
        yield digest.hexdigest() if words[1] == b"blob" else ""


def _skipped(said: IO[bytes], size: int) -> bool:
    while size and (piece := said.read(min(size, _PIECE))):
        size -= len(piece)
    return not size


def name_of(kind: str, data: bytes) -> str:
    """Return the name of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def write(git: Git, kind: str, data: bytes) -> str:
    """Write an object whatever it is, and return its name. Errors: OSError."""
    name = name_of(kind, data)
    folder = os.path.join(git.directory, "objects", name[:2])
    path = os.path.join(folder, name[2:])
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/tmp_{name}", "wb") as file:
            file.write(zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1))
        os.replace(file.name, path)
    return name


def entries(data: bytes) -> tuple[list[Entry], bool]:
    """Return what a tree holds, with modes as git writes them; and whether it can be read to its end."""
    found, at = list[Entry](), 0
    while at < len(data):
        blank, end = data.find(b" ", at), data.find(b"\0", at)
        mode = data[at:blank] if 0 <= blank < end else b""
        if not _MODE.fullmatch(mode) or end + 21 > len(data):
            return found, False
        found.append(Entry(_mode(int(mode, 8)), data[blank + 1 : end], data[end + 1 : end + 21].hex()))
        at = end + 21
    return found, True


def tree(rows: Iterable[Entry]) -> bytes:
    """Return the content of a tree of these entries, in git's order."""
    return b"".join(
        b"%s %s\0%s" % (one.mode, one.name, bytes.fromhex(one.one)) for one in sorted(rows, key=lambda one: one.order)
    )


def commit(data: bytes) -> Raw:
    """Return what a commit says, as far as it can be read."""
    head, _, text = data.partition(b"\n\n")
    tree_, parents, rest = "", list[str](), list[bytes]()
    for line in head.split(b"\n"):
        named = _NAMED.fullmatch(line)
        if named is None:
            rest.append(line)
        elif named[1] == b"parent":
            parents.append(named[2].decode())
        elif not tree_:
            tree_ = named[2].decode()
    return Raw(tree_, tuple(parents), tuple(rest), text)


def _mode(mode: int) -> bytes:
    kind = mode & _KIND
    if kind in (0o040000, 0o120000, 0o160000):
        return b"%o" % kind
    return b"100755" if mode & 0o100 else b"100644"
