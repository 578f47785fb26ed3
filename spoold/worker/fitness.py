"""Can this machine start tasks? A worker that cannot would be the quickest of all to claim them, and give them back.

Law: only what is this machine's own counts, its disk and its processes; an error of the share is everybody's.
"""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

from spoold.rules.fitness import pause_s
from spoold.system.clock import Clock

log = logging.getLogger("spoold")

_ROOM = "free some room where TMPDIR points, or /tmp"
_PROCESSES = "end processes, or raise how many this user or unit may have (ulimit -u, TasksMax=)"
_FILES = "raise how many files may be open (ulimit -n, LimitNOFILE=)"
_MENDS = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EAGAIN: _PROCESSES,
    errno.ENOMEM: "free some memory",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
}
_ELSE = "see that this user can write where TMPDIR points, or /tmp, and can start processes"


class Fitness:
    """Counts the starts in a row that failed for the machine's fault. After each, nothing is claimed for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed = 0
        self._until = -math.inf
        self._why = ""

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Around what only the machine can refuse: its errors count, and go on."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            self._fail(error)
            raise

    def proved(self) -> None:
        """A task was started."""
        self._failed, self._why = 0, ""

    def lacking(self) -> bool:
        """Whether nothing may be claimed just now."""
        return self._clock.monotonic() < self._until

    @property
    def notes(self) -> tuple[str, ...]:
        """What is wrong, until a start proves that it no longer is."""
        return (self._why,) if self._why else ()

    def _fail(self, error: Exception) -> None:
        if self.lacking():
            return  # what was here already when the pause began
        self._failed += 1
        pause = pause_s(self._failed)
        self._until = self._clock.monotonic() + pause
        mend = _MENDS.get(error.errno or 0, _ELSE) if isinstance(error, OSError) else _ELSE
        self._why = f"no task can be started here ({error}), and none is claimed for {pause:g} s; {mend}"
        if self._failed == 1:
            log.error("no task can be started here: %s. Mend: %s; it is tried again now and then", error, mend)
