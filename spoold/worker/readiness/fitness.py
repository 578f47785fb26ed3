"""Can this machine start tasks? A worker that cannot would be the quickest of all to claim them, and give them back.

Law: only this machine's own faults count, of its disk and its processes; an error of the share concerns every worker.
"""

from __future__ import annotations

import errno
import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

from spoold.rules.attempts.start_backoff import MOST_S, pause_s
from spoold.runner.job import Ending
from spoold.system.clock import Clock
from spoold.system.refusals import Fault, fault_of

log = logging.getLogger("spoold")

_ROOM = "free some room where TMPDIR points, or /tmp"
_WRITE = "let this user write where TMPDIR points, or in /tmp"
_FILES = "raise how many files may be open (ulimit -n, LimitNOFILE=)"
# The fix for each error whose cause is clear. Other errors say too little for advice.
_ALWAYS = {errno.EMFILE: _FILES, errno.ENFILE: _FILES, errno.ENOMEM: "free some memory"}
_OF_WRITING = _ALWAYS | {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EACCES: _WRITE,
    errno.EPERM: _WRITE,
    errno.EROFS: _WRITE,
}
_OF_STARTING = _ALWAYS | {
    errno.EAGAIN: "end processes, or raise how many this user or unit may have (ulimit -u, TasksMax=)",
}


class Fitness:
    """Counts the starts in a row that failed for the machine's fault. After each, nothing is claimed for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed = 0
        self._until = -math.inf
        self._why = ""
        self._late = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap writes on this machine's own disk: errors count, and go on."""
        try:
            yield
        except OSError as error:
            self._fail(error, _OF_WRITING)
            raise

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Wrap the start of processes: errors count, and go on."""
        try:
            yield
        except OSError as error:
            self._fail(error, _OF_STARTING)
            raise

    def proved(self) -> None:
        """Note that a task was given to a slot. If starts failed only at the program's start, that proves nothing."""
        if not self._late:
            self._failed, self._why = 0, ""

    def hear(self, ending: Ending) -> None:
        """Take in a task's end: the machine refuses some tasks only when their program is to begin."""
        if ending.kind == "spawn_failed" and ending.refusal is not None:
            if fault_of(ending.refusal) is Fault.MACHINE:
                self._fail(OSError(ending.refusal, os.strerror(ending.refusal)), _OF_STARTING)
                self._late = True
        elif self._late and ending.kind in ("exited", "signaled"):
            self._late = False
            self.proved()

    def lacking(self) -> bool:
        """Whether nothing may be claimed just now."""
        return self._clock.monotonic() < self._until

    @property
    def notes(self) -> tuple[str, ...]:
        """The fault, until a start proves that it is gone, or a task that was started goes on and on."""
        stale = self._late and self._clock.monotonic() >= self._until + MOST_S
        return (self._why,) if self._why and not stale else ()

    def _fail(self, error: OSError, fixes: dict[int, str]) -> None:
        if self.lacking():
            return  # the task was here already when the pause began
        self._failed += 1
        pause = pause_s(self._failed)
        self._until = self._clock.monotonic() + pause
        fix = fixes.get(error.errno or 0, "")
        self._why = f"no task can be started here ({error}), and none is claimed for {pause:g} s{fix and f'; {fix}'}"
        if self._failed == 1:
            advice = f"Fix: {fix}. " if fix else ""
            log.error("no task can be started here: %s. %sIt is tried again now and then.", error, advice)
