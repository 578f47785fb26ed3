"""The file-system port inside the spool's lock: claim strategy `lock`, for mounts whose rename is not exclusive.

Law: a file that more than one node could rename is renamed by the holder of the lock alone, and only after the holder
has seen, by listing under the lock, that it is still there; nothing else is done under the lock. All other calls pass
through. So every move stays the same code, `mover` judges it as ever, and a failure to get the lock is one more error
after which `mover` looks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from spoold.protocol import layout
from spoold.store.existence import listed
from spoold.store.leader_files import read_lease
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem, Stat, Usage
from spoold.system.posix import Lock

# In these only the node that made a name moves it: publishing, and beats on a full share, need no lock.
OWN = frozenset({layout.TMP, layout.HEARTBEATS})
# In these other nodes than the leader move too: workers claim and commit, and a standby takes the token to lead.
SHARED = frozenset({layout.READY, layout.CLAIMED, layout.MASTER})
# The directories in these are doors: a removed door must not come back by a rename into it.
DOORS = frozenset({layout.CLAIMED, layout.ADMITTING})
# A holder that stood still for longer, between two calls, does not rely on the lock: if a holder was cut off for the
# length of a lease (NFS 4: usually 90 s), the server gives its lock to another node, and does not say so.
TRUST_S = 10.0
# After so many full waits in vain the lock is not just busy: people should hear of it.
HOPELESS = 12


class LockedFileSystem:
    """One writer's mount of a spool that claims by lock. wait_s: how long one change may wait for the lock."""

    def __init__(self, inner: FileSystem, lock: Lock, clock: Clock, writer: str, wait_s: float) -> None:
        self._inner = inner
        self._lock = lock
        self._clock = clock
        self._writer = writer
        self._wait_s = wait_s
        self._in_vain_since: float | None = None
        self._doubted: set[str] = set()
        self._candidate = False

    @property
    def inner(self) -> FileSystem:
        """The mount without the lock: looking needs none."""
        return self._inner

    def rename(self, src: str, dst: str) -> None:
        """As the port says. Errors also: EAGAIN if others had the lock (not done), NO_LOCKS if it cannot be had.

        EEXIST: the name is taken in the door that the file should go to.
        """
        if _room(src) in OWN:
            self._inner.rename(src, dst)
            return
        self._candidate = self._candidate or _room(src) == layout.MASTER
        with self._locked() as since:
            if not self._stands(src):
                raise _error(errno.ENOENT, src)
            if _room(dst) in DOORS and listed(self._inner, dst):
                raise _error(errno.EEXIST, dst)
            self._trust(since, src)
            self._doubted.add(src)
            self._inner.rename(src, dst)
            self._doubted.discard(src)

    def rmdir(self, path: str) -> None:
        """As the port says, after its own look at the contents: removing a directory shuts a door."""
        if _room(path) in OWN:
            self._inner.rmdir(path)
            return
        with self._locked() as since:
            if self._inner.list(path):
                raise _error(errno.ENOTEMPTY, path)
            self._trust(since, path)
            self._inner.rmdir(path)

    def mkdir(self, path: str) -> None:
        """As the port says. A node makes its claim directory before all else, so a node without a lock ends there."""
        if _room(path) in DOORS:
            with self._locked():
                self._inner.mkdir(path)
        else:
            self._inner.mkdir(path)

    def list(self, path: str) -> list[str]:
        return self._inner.list(path)

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        return self._inner.read(path, limit, offset=offset)

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        self._inner.write(path, data, durable=durable)

    def append(self, path: str, data: bytes) -> None:
        self._inner.append(path, data)

    def unlink(self, path: str) -> None:
        self._inner.unlink(path)

    def stat(self, path: str) -> Stat:
        return self._inner.stat(path)

    def persist(self, path: str) -> None:
        self._inner.persist(path)

    def has_writer(self, path: str) -> bool | None:
        return self._inner.has_writer(path)

    def sync(self, path: str) -> None:
        self._inner.sync(path)

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets

    def flush(self) -> None:
        self._inner.flush()

    def usage(self) -> Usage:
        return self._inner.usage()

    @contextmanager
    def _locked(self) -> Iterator[float]:
        """Hold the lock; yields since when (s, boottime).

        After a timeout a node tries the lock once per change, without waiting, until it succeeds. A step that makes
        many changes must not wait for each of them, or a node whose lock hangs would stop beating.
        """
        now = self._clock.monotonic()
        with ExitStack() as stack:
            # Taken before the request: the answer may have been long under way.
            since = self._clock.boottime()
            try:
                stack.enter_context(self._lock.held(self._wait_s if self._in_vain_since is None else 0.0))
            except BlockingIOError as error:
                self._waited_in_vain(now, error)
                raise
            self._in_vain_since = None
            yield since

    def _waited_in_vain(self, began: float, error: OSError) -> None:
        if self._in_vain_since is None:
            self._in_vain_since = began
        waited_s = self._clock.monotonic() - self._in_vain_since
        if waited_s > HOPELESS * self._wait_s:
            said = f"others have held the lock for {waited_s:.0f} s, or a machine that died has; run `spool doctor`"
            raise OSError(errno.ENOLCK, said, error.filename) from error

    def _trust(self, since: float, path: str) -> None:
        if self._clock.boottime() - since > TRUST_S:
            raise _error(errno.EAGAIN, path)

    def _stands(self, src: str) -> bool:
        """Whether there is something to move at `src`. Needs the lock. Errors: EAGAIN for a leader that was replaced.

        In directories that only leaders change, the leader knows the names from its own listings: its predecessor
        makes no last move, and a standby that takes over waits for the lock. So the leader need not list what may be
        as long as the backlog, unless it has tried this move and does not know the outcome.
        """
        if _room(src) not in SHARED:
            if self._leads():
                if src not in self._doubted:
                    return True
            elif self._candidate:
                raise _error(errno.EAGAIN, src)
        there = listed(self._inner, src)
        self._doubted.discard(src)
        return there

    def _leads(self) -> bool:
        """Whether this writer holds the token of leadership: no other node can take it while this one locks."""
        token = read_lease(self._inner)
        return token is not None and token.holder == self._writer


def _room(path: str) -> str:
    return path.partition("/")[0]


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
