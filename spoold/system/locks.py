"""The lock port, for spools on file systems whose rename is not exclusive: one holder at a time, on all machines.

Law: a lock is held for one change of names and never over work, and every wait for it is bounded. It is the kernel's
lock or none: a lock that is a file's mere existence outlives its holder, and that cannot be noticed. Touches the one
file that is locked, which must exist: making it here would put one on the empty mount point of an unmounted share.

Touches: files, the clock.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

# The first retry comes about as late as one change of names takes on a local disk. At the longest pause a waiter
# tries 50 to 100 times a second, which over a network is as many round trips and next to no CPU.
FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.02

# Errors of open and flock if the mount has no locks, for now (a server short of them) or for good.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


class Lock(Protocol):
    """Mutual exclusion between all processes that have the same spool mounted, and between their threads."""

    def held(self, wait_s: float) -> AbstractContextManager[None]:
        """Hold the lock inside the `with`; never twice on one thread. It ends with its holder's process.

        Errors, all before the body begins: OSError EAGAIN if others held it for the `wait_s` seconds of the wait
        (0: one try); one of NO_LOCKS if the mount has none; any error of opening a file on a share.
        """
        ...


class FileLock:
    """The kernel's lock (flock) on a file of the share, taken through filelock's `lock_descriptor`.

    It does not use filelock's class of the same name: that class makes a missing file and the directories above it,
    and opens the file anew for each try. Neither falls back to a soft lock here.
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
                # Jitter, so that waiters do not try in step.
                time.sleep(min(pause_s * random.uniform(0.5, 1.0), left_s))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            try:
                if not os.fstat(fd).st_nlink:
                    # A new file of this name is another lock: this one excludes no node any more.
                    raise OSError(errno.EAGAIN, "the lock file was removed meanwhile", self._path)
                yield
            finally:
                # Not by closing alone: a process that was forked meanwhile would keep it.
                unlock_descriptor(fd)
        finally:
            os.close(fd)

    def _taken(self, fd: int) -> bool:
        # Not at the top: the import takes longer than most commands, and most spools do not need it.
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
            # Not as ENOENT: for a rename that would mean that another node was quicker.
            mend = "stop all nodes and make it again, as an empty file"
            raise OSError(errno.ENOLCK, f"the lock file is missing; {mend}", self._path) from error
