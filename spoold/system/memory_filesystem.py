"""The file-system port in memory, with the errnos of Linux: for tests and for the simulator.

Law: everything that the contract suite says of `posix` is true here, errno for errno, and this port is deterministic.
Touches nothing outside the process.

A snapshot costs nothing until one side changes a directory: both share the tree, and the side that first writes to a
directory copies it (`Dir.owner` names its side). A simulator may therefore keep a snapshot of every step.

Touches: threads.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from spoold.system.clock import Clock, ManualClock
from spoold.system.filesystem import Kind, NotRegularError, Stat, Usage, components

_NAME_MAX, _UNBOUNDED = 255, 1 << 40


class MemoryFileSystem:
    """A spool in memory. Each verb is atomic between threads, as between processes on a real file system.

    `clock` gives mtimes (its `wall`); `capacity` is the room for file contents in bytes, None for no bound.
    `writers`: inodes of the files that are open for writing; `shut`: inodes of another user's directories, which this
    user may not write, so that they cannot be moved to another directory.
    """

    def __init__(self, clock: Clock | None = None, *, capacity: int | None = None) -> None:
        self._clock: Clock = clock or ManualClock()
        self.capacity = capacity
        self.writers: set[int] = set()
        self.shut: set[int] = set()
        self._lock = threading.Lock()
        self._owner = object()
        self._used = 0
        self._last_inode = 1
        self._root = Dir(self._owner, 1, self._now())

    def list(self, path: str) -> list[str]:
        """Newest first: deterministic, and never by chance the order that a caller forgot to sort into."""
        with self._lock:
            return [*reversed(self._directory(components(path), path).entries)]

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        with self._lock:
            node = self._node(path)
        if isinstance(node, Dir):
            raise NotRegularError(path, "a directory")
        if node.kind != "file":
            raise NotRegularError(path, "a symlink" if node.kind == "symlink" else "a FIFO or device")
        return node.data[offset:] if limit is None else node.data[offset : offset + max(limit, 0)]

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        del durable  # Memory has no power to lose; a simulator that cuts it takes snapshots at `sync`.
        with self._lock:
            parent, name, old = self._writable(path)
            size = len(old.data) if old else 0
            if len(data) > self._free() + size:
                if old:
                    self._remove(parent, name)
                raise error(errno.ENOSPC, path)
            self._put(parent, name, bytes(data), old)

    def append(self, path: str, data: bytes) -> None:
        """A full disk takes what still fits and then says ENOSPC, as real ones do."""
        with self._lock:
            parent, name, old = self._writable(path)
            fitting = data[: max(self._free(), 0)]
            self._put(parent, name, (old.data if old else b"") + fitting, old)
            if len(fitting) < len(data):
                raise error(errno.ENOSPC, path)

    def rename(self, src: str, dst: str) -> None:
        *source_dir, source = components(src) or ("",)
        *target_dir, target = components(dst) or ("",)
        if not source or not target:
            raise OSError(errno.EBUSY, "the root of a spool cannot be renamed", src, None, dst)
        with self._lock:
            giver = self._directory(tuple(source_dir), src, dst, own=True)
            taker = self._directory(tuple(target_dir), src, dst, own=True)
            node = self._child(giver, source, src, dst)
            old = self._child_or_none(taker, target, src, dst)
            if old is node:
                return
            check_rename(node, old, src, dst)
            if node.inode in self.shut and giver is not taker:
                raise error(errno.EACCES, src, dst)
            if old is not None:
                self._remove(taker, target)
            del giver.entries[source]
            taker.entries[target] = node
            giver.mtime_ns = taker.mtime_ns = self._now()

    def unlink(self, path: str) -> None:
        with self._lock:
            if isinstance(self._node(path), Dir):
                raise error(errno.EISDIR, path)
            parent, name = self._parent(path)
            self._remove(parent, name)

    def mkdir(self, path: str) -> None:
        with self._lock:
            self._make(path, Dir(self._owner, self._next_inode(), self._now()))

    def rmdir(self, path: str) -> None:
        if not path:
            raise OSError(errno.EBUSY, "the root of a spool cannot be removed", path)
        with self._lock:
            node = self._node(path)
            if not isinstance(node, Dir):
                raise error(errno.ENOTDIR, path)
            if node.entries:
                raise error(errno.ENOTEMPTY, path)
            parent, name = self._parent(path)
            self._remove(parent, name)

    def stat(self, path: str) -> Stat:
        with self._lock:
            node = self._node(path)
            if isinstance(node, Dir):
                return Stat("dir", 0, node.mtime_ns, node.inode, node.inode in self.shut)
            return Stat(node.kind, len(node.data), node.mtime_ns, node.inode)

    def sync(self, path: str) -> None:
        with self._lock:
            self._directory(components(path), path)

    def persist(self, path: str) -> None:
        self.stat(path)

    def has_writer(self, path: str) -> bool | None:
        return None if self.remote else self.stat(path).inode in self.writers

    remote = forgets = False

    def flush(self) -> None:
        """Nothing is left to make durable."""

    def usage(self) -> Usage:
        with self._lock:
            total = _UNBOUNDED if self.capacity is None else self.capacity
            return Usage(total_bytes=total, free_bytes=max(self._free(), 0), free_inodes=None)

    # Helpers for a test or a simulator, beyond the port.

    def snapshot(self) -> MemoryFileSystem:
        """An independent copy of the whole tree, in constant time, with the same clock and capacity."""
        copy = MemoryFileSystem(self._clock, capacity=self.capacity)
        with self._lock:
            copy._root, copy._used, copy._last_inode = self._root, self._used, self._last_inode
            # From now on neither side owns the shared directories, so either side's first change copies.
            self._owner = object()
        return copy

    def make_symlink(self, path: str, target: str = "nowhere") -> None:
        """A symlink, which is never followed: below it is ENOTDIR, as below a file. Errors as for mkdir."""
        with self._lock:
            self._make(path, Leaf("symlink", self._next_inode(), self._now(), os.fsencode(target)))

    def make_fifo(self, path: str) -> None:
        """A FIFO without a reader or writer. Errors as for mkdir."""
        with self._lock:
            self._make(path, Leaf("other", self._next_inode(), self._now()))

    def make_dirs(self, *paths: str) -> None:
        """`mkdir -p` for each path."""
        for path in paths:
            parts = components(path)
            for end in range(1, len(parts) + 1):
                try:
                    self.mkdir("/".join(parts[:end]))
                except FileExistsError:
                    continue

    def files(self, under: str = "") -> dict[str, bytes]:
        """Every regular file below `under` with its content, by path, sorted: a whole spool at one glance."""
        with self._lock:
            found = walk(self._directory(components(under), under), under)
            return dict(sorted(found))

    def _now(self) -> int:
        return int(self._clock.wall() * 1_000_000_000)

    def _next_inode(self) -> int:
        self._last_inode += 1
        return self._last_inode

    def _free(self) -> int:
        return (_UNBOUNDED if self.capacity is None else self.capacity) - self._used

    def _child_or_none(self, parent: Dir, name: str, *paths: str) -> Dir | Leaf | None:
        if len(os.fsencode(name)) > _NAME_MAX:
            raise error(errno.ENAMETOOLONG, *paths)
        if "\0" in name:
            raise ValueError("embedded null byte")
        return parent.entries.get(name)

    def _child(self, parent: Dir, name: str, *paths: str) -> Dir | Leaf:
        node = self._child_or_none(parent, name, *paths)
        if node is None:
            raise error(errno.ENOENT, *paths)
        return node

    def _directory(self, parts: tuple[str, ...], *paths: str, own: bool = False) -> Dir:
        """The directory at `parts`; with `own`, all on the way may then be changed by this file system."""
        if own and self._root.owner is not self._owner:
            self._root = self._copy(self._root)
        here = self._root
        for name in parts:
            child = self._child(here, name, *paths)
            if isinstance(child, Leaf):
                raise error(errno.ENOTDIR, *paths)
            if own and child.owner is not self._owner:
                child = here.entries[name] = self._copy(child)
            here = child
        return here

    def _copy(self, shared: Dir) -> Dir:
        return Dir(self._owner, shared.inode, shared.mtime_ns, dict(shared.entries))

    def _node(self, path: str) -> Dir | Leaf:
        parts = components(path)
        if not parts:
            return self._root
        return self._child(self._directory(parts[:-1], path), parts[-1], path)

    def _parent(self, path: str) -> tuple[Dir, str]:
        """The directory a path lies in, ready to be changed, and the last name. `path` is not the root."""
        *parts, name = components(path)
        return self._directory(tuple(parts), path, own=True), name

    def _writable(self, path: str) -> tuple[Dir, str, Leaf | None]:
        """As open(2) for writing: the file's directory and name, and the regular file already there."""
        if not path:
            raise error(errno.EISDIR, path)
        parent, name = self._parent(path)
        old = self._child_or_none(parent, name, path)
        if isinstance(old, Dir):
            raise error(errno.EISDIR, path)
        if old is not None and old.kind != "file":
            raise error(errno.ELOOP if old.kind == "symlink" else errno.ENXIO, path)
        return parent, name, old

    def _put(self, parent: Dir, name: str, data: bytes, old: Leaf | None) -> None:
        self._used += len(data) - (len(old.data) if old else 0)
        if old is None:
            parent.mtime_ns = self._now()
        parent.entries[name] = Leaf("file", old.inode if old else self._next_inode(), self._now(), data)

    def _make(self, path: str, node: Dir | Leaf) -> None:
        if not path:
            raise error(errno.EEXIST, path)
        parent, name = self._parent(path)
        if self._child_or_none(parent, name, path) is not None:
            raise error(errno.EEXIST, path)
        parent.entries[name] = node
        parent.mtime_ns = self._now()

    def _remove(self, parent: Dir, name: str) -> None:
        node = parent.entries.pop(name)
        if isinstance(node, Leaf) and node.kind == "file":
            self._used -= len(node.data)
        parent.mtime_ns = self._now()


# The parts of a file system in memory: directories and their entries, and the refusals of rename(2) there.


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
