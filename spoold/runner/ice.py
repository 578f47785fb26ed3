"""runner/ice: a tree of processes is stopped as a whole, and goes on as it was.

Law: a look is never the whole truth, because processes fork while one looks: stopping goes on until two looks in a
row find all of it stopped. What had stopped itself before is left alone, and is not continued later.
It may look at /proc and send SIGSTOP and SIGCONT. The supervisor loads it: kept small.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from spoold.runner import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.001


class Ice:
    """What is held in one tree: pid → when that process started (ticks since boot), parents before their children."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def stop(self, find: Callable[[], list[tree.Seen]], patience_s: float) -> bool:
        """Stops all that `find` finds; False if some of it was still on the move when the patience was over.

        SIGSTOP takes effect before a process is back in its own code. One that waits in the kernel, for a hung share
        perhaps, takes it on its way out: it counts as stopped.
        """
        until = time.monotonic() + patience_s
        quiet = 0
        while quiet < 2:
            moving = [seen for seen in find() if seen.alive and not self._stands(seen)]
            quiet = 0 if moving else quiet + 1
            for seen in moving:
                self._held[seen.pid] = seen.started
                with suppress(OSError):
                    os.kill(seen.pid, signal.SIGSTOP)
            if moving:
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_S)
        return True

    def _stands(self, seen: tree.Seen) -> bool:
        if seen.state in (b"T", b"t"):
            return True
        # A zombie that lives has lost its first thread, and shows nothing of its others.
        return seen.state in (b"D", b"Z") and self._held.get(seen.pid) == seen.started

    def melt(self) -> None:
        """Has all that is held go on. Children first: a shell would take a child that is still stopped for one that
        somebody put to rest."""
        for pid, started in reversed(self._held.items()):
            seen = tree.look(pid)
            if seen is not None and seen.started == started:
                with suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
        self._held.clear()
