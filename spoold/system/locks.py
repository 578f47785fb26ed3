"""The lock port, for spools on file systems whose rename is not exclusive: one holder at a time, on all machines.

Law: a lock is held for one change of names and never over work, it is waited for with a bound, and it is the kernel's
or none: a lock that is a file's mere existence outlives its holder, and nobody could tell. Touches the one file that
is locked, which must be there: making it here would put one on the empty mount point of a share that is away.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

# The first look again comes about as late as one change of names takes on a local disk. At the longest pause a waiter
# asks 50 to 100 times a second, which over a network is as many round trips and next to no CPU.
FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.02

# What open and flock say where the mount has no locks, whether for now (a server short of them) or for good.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


class Lock(Protocol):
    """Mutual exclusion between all who have the same spool mounted, and between the threads of each of them."""

    def held(self, wait_s: float) -> AbstractContextManager[None]:
        """Hold it inside the `with`; never twice on one thread. It goes with its holder's process.

        Errors, all before the body begins: OSError EAGAIN when others held it for the `wait_s` seconds that were
        waited (0: asked once); one of NO_LOCKS when there is none to be had; whatever opening a file on a share
        may raise.
        """
        ...


class FileLock:
    """The kernel's lock (flock) on a file of the share, taken through filelock's `lock_descriptor`.

    That, and not filelock's class of the same name: the class makes the file and the directories above it where they
    are missing, and opens it anew for each try. Neither falls back to a soft lock here.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        import random

        from filelock import unlock_descriptor

        until, pause_s = time.monotonic() + wait_s, FIRST_PAUSE_S
        fd = self._open()
        try:
            while not self._taken(fd):
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise OSError(errno.EAGAIN, f"others held the lock for {wait_s:g} s", self._path)
                # Jitter, so that those who wait do not ask in step.
                time.sleep(min(pause_s * random.uniform(0.5, 1.0), left_s))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            try:
                if not os.fstat(fd).st_nlink:
                    # Who makes a removed file again makes another lock: this one keeps nobody out any more.
                    raise OSError(errno.EAGAIN, "the lock file was removed meanwhile", self._path)
                yield
            finally:
                # Not by closing alone: a process that was forked meanwhile would hold it on.
                unlock_descriptor(fd)
        finally:
            os.close(fd)

    def _taken(self, fd: int) -> bool:
        # Not at the top: it takes longer to import than most commands take to run, and most spools need none.
        from filelock import lock_descriptor

        try:
            return lock_descriptor(fd, blocking=False)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            said = f"{error.strerror}: the mount gives no lock, and this spool claims by lock; run `spool doctor`"
            raise OSError(error.errno, said, self._path) from error

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            # Not as ENOENT, which of a rename would mean that somebody else was quicker.
            mend = "stop all nodes and make it again, as an empty file"
            raise OSError(errno.ENOLCK, f"the lock file is missing; {mend}", self._path) from error
