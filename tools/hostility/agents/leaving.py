"""What an agent says that it has left: each file that must be saved, with its names as git and LFS would have them.

Law: reads regular files and links of one tree, and follows none. It goes as deep as the tree does.

Touches: files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

PIECE = 1 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Left:
    """A file or a link. path: in the tree, bytes that are no text as surrogates; names: of git blobs with its
    content, as it is and with other line ends, and the sha256 that LFS knows it by."""

    path: str
    names: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


def blob(data: bytes) -> str:
    """Return the name of a blob."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def left_in(
    tree: str, ignored: Sequence[bytes] = (), known: Mapping[bytes, bytes] | None = None, base: Sequence[bytes] = ()
) -> Iterator[Left]:
    """Return what is in a tree, without git directories. ignored: paths below which only what is in base counts;
    known: content of files that cannot be read."""
    place = os.open(tree, FOLDER)
    try:
        yield from _walk(place, b"", tuple(ignored), known or {}, frozenset(base))
    finally:
        os.close(place)


def counts(path: bytes, ignored: Sequence[bytes], base: Collection[bytes]) -> bool:
    """Whether what is at a path must be saved: it is not ignored, or the base holds it."""
    return not _is_below(path, ignored) or _holds(path, base)


def _walk(
    place: int, at: bytes, ignored: tuple[bytes, ...], known: Mapping[bytes, bytes], base: frozenset[bytes]
) -> Iterator[Left]:
    waiting = [(os.dup(place), at)]
    while waiting:
        folder, at = waiting.pop()
        try:
            for name in sorted(os.fsencode(one) for one in _listed(folder)):
                path = at + name
                if name == b".git" or not counts(path, ignored, base):
                    continue
                with contextlib.suppress(OSError):
                    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode) and len(waiting) < 500:
                        waiting.append((os.open(name, FOLDER, dir_fd=folder), path + b"/"))
                    elif found := _named(folder, name, path, about.st_mode, known):
                        yield found
        finally:
            os.close(folder)
    for path, data in known.items():
        if not _is_below(path, ignored) and os.path.lexists(os.path.join(b"/proc/self/fd/%d" % place, path)):
            yield Left(os.fsdecode(path), _names([data]))


def _listed(folder: int) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _named(folder: int, name: bytes, path: bytes, mode: int, known: Mapping[bytes, bytes]) -> Left | None:
    if stat.S_ISLNK(mode):
        return Left(os.fsdecode(path), (blob(os.readlink(name, dir_fd=folder)),))
    if not stat.S_ISREG(mode) or path in known:
        return None
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= 16 * PIECE:
            return Left(os.fsdecode(path), _names([file.read()]))
        git, plain = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False), hashlib.sha256()
        while piece := file.read(PIECE):
            git.update(piece)
            plain.update(piece)
        return Left(os.fsdecode(path), (git.hexdigest(), plain.hexdigest()))


def _names(data: Sequence[bytes]) -> tuple[str, ...]:
    """Return the names of a content: as it is, and as attributes of the tree may have git write it."""
    found = []
    for one in data:
        found += [blob(one), blob(one.replace(b"\r\n", b"\n")), hashlib.sha256(one).hexdigest()]
        with contextlib.suppress(UnicodeError):
            found.append(blob(one.decode("utf-16").encode()))
    return tuple(dict.fromkeys(found))


def _is_below(path: bytes, ignored: Sequence[bytes]) -> bool:
    return any(not one or path == one or path.startswith(one + b"/") for one in ignored)


def _holds(path: bytes, base: Collection[bytes]) -> bool:
    return path in base or any(one.startswith(path + b"/") for one in base)
