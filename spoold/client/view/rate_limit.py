"""How much a view asks of a share: a mount that counts round trips, how many a second the view allows itself, and
answers that are kept for a while and worked out once for all who ask at the same time.

Law: the mount lets nothing through that writes. What a call costs is the number of round trips that NFS 4 was
measured to need for it while nothing is cached: a listing 2, and one more for each further hundred names; a file that
is read 3 (open, read, close), and one for each further MiB; a stat 1. What needs the share is asked one after the
other, as the allowance permits. While that is spent an older answer is given; where there is none, the caller waits
for its turn, and gives up with a sentence that says why.

Touches: threads.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from spoold.protocol.errors import Unavailable
from spoold.store.locked_renames import LockedFileSystem
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


# Answers that are kept for a while, and worked out once for all who ask at the same time.


T = TypeVar("T")
KEPT, FEW = 256, 3
# While the allowance is spent, an answer that is at most so old (s) will do; and a caller waits at most so long.
STALE_S, WAIT_S, NAP_S = 120.0, 15.0, 0.1
_NEVER = float("-inf")


class Answers:
    """allowance: of the mount that the answers are read from, None where they come from memory."""

    def __init__(self, monotonic: Callable[[], float], allowance: Allowance | None = None) -> None:
        self._monotonic, self._allowance = monotonic, allowance
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._few = threading.BoundedSemaphore(FEW)
        self._kept: OrderedDict[tuple[Any, ...], tuple[float, Any]] = OrderedDict()
        self._busy: dict[tuple[Any, ...], threading.Lock] = {}

    def get(self, question: tuple[Any, ...], fresh_s: float, work_out: Callable[[], T]) -> T:
        """Return the answer, at most so old (s). Errors: those of `work_out`, which are not kept; Unavailable."""
        with self._lock:
            busy = self._busy.setdefault(question, threading.Lock())
        try:
            with busy:
                return self._answer(question, fresh_s, work_out)
        finally:
            with self._lock:
                self._busy.pop(question, None)

    def _answer(self, question: tuple[Any, ...], fresh_s: float, work_out: Callable[[], T]) -> T:
        with self._lock:
            at, answer = self._kept.get(question, (_NEVER, None))
        age_s = self._monotonic() - at
        if age_s < fresh_s:
            return cast("T", answer)
        with self._turns():
            if not self._may_read(patient=age_s > STALE_S):
                return cast("T", answer)
            found = work_out()
        self._keep(question, found)
        return found

    def _keep(self, question: tuple[Any, ...], found: object) -> None:
        with self._lock:
            self._kept[question] = self._monotonic(), found
            self._kept.move_to_end(question)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def _turns(self) -> contextlib.AbstractContextManager[object]:
        """On a share one question is answered at a time; elsewhere a few, since each may hold a large file."""
        if self._allowance is None:
            return contextlib.nullcontext()
        return self._turn if self._allowance.rationed else self._few

    def _may_read(self, *, patient: bool) -> bool:
        """Whether something may be read now. patient: wait until it may. Errors: Unavailable where that lasts."""
        if self._allowance is None:
            return True
        for _ in range(int(WAIT_S / NAP_S)):
            if self._allowance.wait_s() <= 0:
                return True
            if not patient:
                return False
            threading.Event().wait(NAP_S)
        raise Unavailable(
            "the share is asked as often as a view allows itself, and others are waiting too. Try again in a minute, "
            "or ask with the command line, which reads by itself."
        )
