"""The parts of a file system in memory: directories and their entries, and the refusals of rename(2) there.

Law: a Leaf is never changed in place, and a Dir only by its owner, so that snapshots can share both. Touches nothing
outside the process.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from spoold.system.filesystem import Kind


@dataclass(frozen=True, slots=True)
class Leaf:
    """A file, symlink or FIFO. Never changed in place, so that snapshots can share it."""

    kind: Kind
    inode: int
    mtime_ns: int
    data: bytes = b""


@dataclass(slots=True)
class Dir:
    """A directory. owner: the side that may change it; entries: its contents, by name."""

    owner: object
    inode: int
    mtime_ns: int
    entries: dict[str, Dir | Leaf] = field(default_factory=dict)


def error(code: int, path: str, second: str | None = None) -> OSError:
    """The OSError that the system would raise."""
    return OSError(code, os.strerror(code), path, None, second)


def check_rename(node: Dir | Leaf, old: Dir | Leaf | None, src: str, dst: str) -> None:
    """The refusals of rename(2), in Linux's order, for a source that exists."""
    if isinstance(node, Dir) and dst.startswith(src + "/"):
        raise error(errno.EINVAL, src, dst)
    if src.startswith(dst + "/"):
        raise error(errno.ENOTEMPTY, src, dst)
    if isinstance(node, Dir) and isinstance(old, Leaf):
        raise error(errno.ENOTDIR, src, dst)
    if isinstance(node, Leaf) and isinstance(old, Dir):
        raise error(errno.EISDIR, src, dst)
    if isinstance(old, Dir) and old.entries:
        raise error(errno.ENOTEMPTY, src, dst)


def walk(directory: Dir, path: str) -> Iterator[tuple[str, bytes]]:
    """Every regular file below, by path, with its content."""
    for name, node in directory.entries.items():
        inside = f"{path}/{name}" if path else name
        if isinstance(node, Dir):
            yield from walk(node, inside)
        elif node.kind == "file":
            yield inside, node.data
