"""A mount that counts what it is asked, by verb and by the directory of the spool that is asked about.

Law: it changes nothing. What a listing returns is counted too, since a listing of a thousand names is one call, and
yet costs what a thousand names cost.
"""

from __future__ import annotations

from collections import Counter

from spoold.system.filesystem import FileSystem, Stat, Usage


class CountingFileSystem:
    """Wraps the port. calls: by (verb, top-level directory); entries: names that listings returned, by directory."""

    def __init__(self, inner: FileSystem) -> None:
        self.inner = inner
        self.calls: Counter[tuple[str, str]] = Counter()
        self.entries: Counter[str] = Counter()

    def clear(self) -> None:
        """Count from nothing again."""
        self.calls.clear()
        self.entries.clear()

    def verbs(self) -> Counter[str]:
        """The calls by verb alone."""
        found: Counter[str] = Counter()
        for (verb, _), times in self.calls.items():
            found[verb] += times
        return found

    @property
    def remote(self) -> bool:
        return self.inner.remote

    @property
    def forgets(self) -> bool:
        return self.inner.forgets

    def list(self, path: str) -> list[str]:
        names = self.inner.list(path)
        self._note("list", path)
        self.entries[path.partition("/")[0]] += len(names)
        return names

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        self._note("read", path)
        return self.inner.read(path, limit, offset=offset)

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        self._note("write", path)
        self.inner.write(path, data, durable=durable)

    def append(self, path: str, data: bytes) -> None:
        self._note("append", path)
        self.inner.append(path, data)

    def rename(self, src: str, dst: str) -> None:
        self._note("rename", src)
        self.inner.rename(src, dst)

    def unlink(self, path: str) -> None:
        self._note("unlink", path)
        self.inner.unlink(path)

    def mkdir(self, path: str) -> None:
        self._note("mkdir", path)
        self.inner.mkdir(path)

    def rmdir(self, path: str) -> None:
        self._note("rmdir", path)
        self.inner.rmdir(path)

    def stat(self, path: str) -> Stat:
        self._note("stat", path)
        return self.inner.stat(path)

    def persist(self, path: str) -> None:
        self._note("persist", path)
        self.inner.persist(path)

    def has_writer(self, path: str) -> bool | None:
        self._note("has_writer", path)
        return self.inner.has_writer(path)

    def sync(self, path: str) -> None:
        self._note("sync", path)
        self.inner.sync(path)

    def flush(self) -> None:
        self._note("flush", "")
        self.inner.flush()

    def usage(self) -> Usage:
        self._note("usage", "")
        return self.inner.usage()

    def _note(self, verb: str, path: str) -> None:
        self.calls[verb, path.partition("/")[0]] += 1
