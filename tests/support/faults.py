"""A file system that misbehaves on demand, in the ways that real shares were seen to.

Law: it wraps the port and never patches anything; a fault is named by the verb and the path that it strikes. One
wrapper belongs to one node, so that one machine can be cut off while the others go on.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from spoold.system.filesystem import FileSystem, Stat, Usage
from tests.support.smb import SmbClient

T = TypeVar("T")
How = Literal["refused", "done", "late"]


class Crashed(BaseException):
    """The process is gone in the middle of a call. No `except OSError` of the node can see it."""


@dataclass(slots=True)
class Fault:
    """What strikes the next `times` calls of a verb ('' = any) of which a path begins with `path`.

    refused: an error, and nothing happened; done: an error although it happened (the reply was lost); late: an
    error, and it happens when the network comes back (`deliver`). after: how many such calls are spared first.
    """

    verb: str
    path: str
    code: int
    how: How = "refused"
    times: int = 1
    after: int = 0

    def strikes(self, verb: str, paths: tuple[str, ...]) -> bool:
        """Whether this call is meant."""
        if self.times == 0 or self.verb not in ("", verb) or not any(p.startswith(self.path) for p in paths or ("",)):
            return False
        self.after -= 1
        return self.after < 0


@dataclass(slots=True)
class Hang:
    """A call during which the rest of the world goes on: `meanwhile` runs before the call is made, once.

    number: which of the calls that match is meant, from 1.
    """

    verb: str
    path: str
    meanwhile: Callable[[], object]
    number: int = 1

    def strikes(self, verb: str, paths: tuple[str, ...]) -> bool:
        """Whether this call is the one that is meant."""
        self.number -= self.verb == verb and any(p.startswith(self.path) for p in paths)
        return self.number == 0


class FaultyFileSystem:
    """One node's mount. `calls` counts what it was asked; `off` is a pulled cable. closed: directories of another
    user with mode 700, as this node's user meets them.

    asked: calls by verb; missed: those that found no such name; client: counts what an SMB client would ask for them.
    crash_after: the process is gone once it has made that many more calls. last_words: the call that it was about to
    make then is carried out late, as a network does for a process that was killed while it waited.
    """

    def __init__(self, inner: FileSystem) -> None:
        self.inner = inner
        self.asked: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.off = False
        self.crash_after: int | None = None
        self.last_words = False
        self.closed: set[str] = set()
        self.faults: list[Fault] = []
        self.hangs: list[Hang] = []
        self._late: list[Callable[[], object]] = []
        self.client: SmbClient | None = None

    def fail(self, verb: str, path: str, code: int, how: How = "refused", times: int = 1, after: int = 0) -> None:
        """Let the next such calls fail, once `after` of them were spared."""
        self.faults.append(Fault(verb, path, code, how, times, after))

    def hang(self, verb: str, path: str, meanwhile: Callable[[], object]) -> None:
        """Let the world go on during the next such call."""
        self.hangs.append(Hang(verb, path, meanwhile))

    def crash_at(self, verb: str, path: str, number: int = 1) -> None:
        """The process is gone when it would make such a call for the number-th time."""

        def crash() -> None:
            self.crash_after = 0

        self.hangs.append(Hang(verb, path, crash, number))

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return self.asked.total()

    @property
    def waiting(self) -> int:
        """How many calls the network keeps, to carry them out late."""
        return len(self._late)

    def deliver(self) -> int:
        """The network carries out what it had kept; returns how many calls then still succeeded."""
        late, self._late = self._late, []
        done = 0
        for act in late:
            try:
                act()
                done += 1
            except OSError:
                continue
        return done

    def list(self, path: str) -> list[str]:
        return self._call("list", lambda: self.inner.list(path), path)

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        return self._call("read", lambda: self.inner.read(path, limit, offset=offset), path)

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        self._call("write", lambda: self.inner.write(path, data, durable=durable), path)
        if durable and self.client is not None:
            self.client.asked["flush"] += 1

    def append(self, path: str, data: bytes) -> None:
        self._call("append", lambda: self.inner.append(path, data), path)

    def rename(self, src: str, dst: str) -> None:
        self._call("rename", lambda: self.inner.rename(src, dst), src, dst)

    def unlink(self, path: str) -> None:
        self._call("unlink", lambda: self.inner.unlink(path), path)

    def mkdir(self, path: str) -> None:
        self._call("mkdir", lambda: self.inner.mkdir(path), path)

    def rmdir(self, path: str) -> None:
        self._call("rmdir", lambda: self.inner.rmdir(path), path)

    def stat(self, path: str) -> Stat:
        return self._call("stat", lambda: self.inner.stat(path), path)

    def persist(self, path: str) -> None:
        self._call("persist", lambda: self.inner.persist(path), path)

    def has_writer(self, path: str) -> bool | None:
        return self._call("has_writer", lambda: self.inner.has_writer(path), path)

    def sync(self, path: str) -> None:
        self._call("sync", lambda: self.inner.sync(path), path)

    @property
    def remote(self) -> bool:
        return self.inner.remote

    @property
    def forgets(self) -> bool:
        return self.inner.forgets

    def flush(self) -> None:
        self._call("flush", self.inner.flush, "")

    def usage(self) -> Usage:
        return self._call("usage", self.inner.usage)

    def _call(self, verb: str, act: Callable[[], T], *paths: str) -> T:
        for hang in [hang for hang in self.hangs if hang.strikes(verb, paths)]:
            self.hangs.remove(hang)
            hang.meanwhile()
        if self.crash_after is not None:
            if self.crash_after <= 0:
                if self.last_words:
                    self._late.append(act)
                    self.last_words = False
                raise Crashed(f"before {verb}")
            self.crash_after -= 1
        self.asked[verb] += 1
        if self.off:
            raise error(errno.EHOSTDOWN, *paths)
        if any(_denies(directory, verb, paths) for directory in self.closed):
            raise error(errno.EACCES, *paths)
        fault = next((f for f in self.faults if f.strikes(verb, paths)), None)
        if fault is None:
            return self._act(verb, act, *paths)
        fault.times -= 1
        if fault.how == "done":
            act()
        elif fault.how == "late":
            self._late.append(act)
        raise error(fault.code, *paths)

    def _act(self, verb: str, act: Callable[[], T], *paths: str) -> T:
        done = False
        try:
            found = act()
            done = True
        except FileNotFoundError:
            self.missed[verb] += 1
            raise
        finally:
            if self.client is not None:
                self.client.hear(verb, *paths, done=done)
        return found


def _denies(directory: str, verb: str, paths: tuple[str, ...]) -> bool:
    """Whether a directory with mode 700 refuses that to others: to look into it, to name anything in it, and to be
    moved into another directory. It may be renamed where it is, and removed if it is empty, by those who may write to
    the one above.
    """
    if any(path.startswith(f"{directory}/") for path in paths):
        return True
    if directory not in paths:
        return False
    above = {path.rpartition("/")[0] for path in paths}
    moved_away = verb == "rename" and paths[0] == directory and len(above) > 1
    return moved_away or verb in ("list", "read", "persist", "has_writer", "sync")


def error(code: int, *paths: str) -> OSError:
    """The error as the system would raise it."""
    return OSError(code, os.strerror(code), *paths[:1])
