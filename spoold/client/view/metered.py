"""A mount that counts what a share would be asked, and how many round trips a second a view allows itself.

Law: it lets nothing through that writes. What a call costs is the number of round trips that NFS 4 was measured to
need for it while nothing is cached: a listing 2, and one more for each further hundred names; a file that is read 3
(open, read, close), and one for each further MiB; a stat 1.
"""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from spoold.store.locked import LockedFileSystem
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem, Stat, Usage
from spoold.system.posix import PosixFileSystem, only_looking

# The promise is 4 a second. What the kernel asks beside (attributes, leases) has the rest.
LOOKS_PER_S, ANSWERS_PER_S = 2.0, 1.2
# A person who opens a task is not to wait for what the last minute cost.
LOOKS_BURST, ANSWERS_BURST = 10.0, 40.0
# Most bytes of a file that is read whole: what is larger is no task and no record, and must not fill the memory.
READ_MOST = 32 << 20
_NAMES_PER_CALL, _BYTES_PER_CALL = 100, 1 << 20
_names = list[str]  # inside the class, `list` is the verb


class Metered:
    """Wraps the port for reading. spent: the round trips so far, as a share would have them."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner
        self.spent = 0

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets

    def list(self, path: str) -> _names:
        self.spent += 2
        names = self._inner.list(path)
        self.spent += len(names) // _NAMES_PER_CALL
        return names

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        self.spent += 3
        data = self._inner.read(path, READ_MOST if limit is None else limit, offset=offset)
        self.spent += len(data) // _BYTES_PER_CALL
        return data

    def stat(self, path: str) -> Stat:
        self.spent += 1
        return self._inner.stat(path)

    def usage(self) -> Usage:
        self.spent += 1
        return self._inner.usage()

    def has_writer(self, path: str) -> bool | None:
        return self._inner.has_writer(path)

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        _refuse(path)

    def append(self, path: str, data: bytes) -> None:
        _refuse(path)

    def rename(self, src: str, dst: str) -> None:
        _refuse(src)

    def unlink(self, path: str) -> None:
        _refuse(path)

    def mkdir(self, path: str) -> None:
        _refuse(path)

    def rmdir(self, path: str) -> None:
        _refuse(path)

    def persist(self, path: str) -> None:
        _refuse(path)

    def sync(self, path: str) -> None:
        _refuse(path)

    def flush(self) -> None:
        _refuse("")


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


class Allowance:
    """So many round trips a second, and as many more as were left over, up to a bound. On a local disk nothing is
    counted.
    """

    def __init__(self, mount: Metered, clock: Clock, per_s: float, burst: float) -> None:
        self._mount, self._clock, self._per_s, self._burst = mount, clock, per_s, burst
        self._seen, self._left, self._at = mount.spent, burst, clock.monotonic()

    @property
    def rationed(self) -> bool:
        """Whether round trips are counted."""
        return self._mount.remote

    def free(self) -> None:
        """What was asked since the last question is not charged: it could not be spread over time."""
        self._seen = self._mount.spent

    def wait_s(self) -> float:
        """In how many seconds the next round trip is allowed; 0: now."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._left -= self._mount.spent - self._seen
        self._seen, self._at = self._mount.spent, now
        if not self._mount.remote:
            self._left = self._burst
        return max(0.0, -self._left / self._per_s)


def through(store: Store) -> tuple[Store, Metered]:
    """Return the same spool, through a mount of its own that counts, and leaves no trace where it looks."""
    fs = store.fs.inner if isinstance(store.fs, LockedFileSystem) else store.fs
    mount = Metered(only_looking(fs) if isinstance(fs, PosixFileSystem) else fs)
    return Store(mount, store.clock, store.writer, store.marker, store.basics, lambda: store.settings), mount
