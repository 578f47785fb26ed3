"""runner/ice: stops and continues a tree of processes as a whole; a guard ends it if the supervisor dies.

Law: a look is never the whole truth, because processes fork during it: stopping goes on until two looks in a row find
all of them stopped. A process that had stopped itself before is left alone, and is not continued later.
It may look at /proc, send signals and fork the guard. The supervisor loads it: kept small.

Touches: files, processes, the clock.
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
    """The held processes of one tree: pid → start time (ticks since boot), parents before their children."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def stop(self, find: Callable[[], list[tree.Seen]], patience_s: float) -> bool:
        """Stop all processes that `find` finds; False if some still ran when the patience was over.

        SIGSTOP takes effect before a process is back in its own code. A process that waits in the kernel, such as for
        a hung share, takes the signal on its way out: it counts as stopped.
        """
        until = time.monotonic() + patience_s
        quiet = 0
        while quiet < 2:
            moving = self.hold(find())
            quiet = 0 if moving else quiet + 1
            if moving:
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_S)
        return True

    def hold(self, found: list[tree.Seen]) -> bool:
        """Send SIGSTOP to the processes that still run; return whether there are any."""
        moving = [seen for seen in found if seen.alive and not self._stands(seen)]
        for seen in moving:
            self._held[seen.pid] = seen.started
            with suppress(OSError):
                os.kill(seen.pid, signal.SIGSTOP)
        return bool(moving)

    def _stands(self, seen: tree.Seen) -> bool:
        if seen.state in (b"T", b"t"):
            return True
        # A zombie that is alive has lost its first thread, and /proc does not show the others.
        return seen.state in (b"D", b"Z") and self._held.get(seen.pid) == seen.started

    def melt(self) -> None:
        """Continue all held processes. Children first: a shell would treat a child that is still stopped as a
        suspended job."""
        self._send(signal.SIGCONT)
        self._held.clear()

    def end(self) -> None:
        """Kill all held processes."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for pid, started in reversed(self._held.items()):
            seen = tree.look(pid)
            if seen is not None and seen.started == started:
                with suppress(OSError):
                    os.kill(pid, number)


class Guard:
    """A process outside the ice that kills the held processes if the supervisor dies before it continues them."""

    def __init__(self, end: Callable[[], None]) -> None:
        """Fork the guard. Errors: OSError."""
        watched, hold = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(watched)
            os.close(hold)
            raise
        if self.pid == 0:
            try:
                _watch(watched)
                end()
            finally:
                os._exit(0)
        os.close(watched)
        self._hold = hold

    def dismiss(self) -> None:
        """Kill the guard; the supervisor collects it."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._hold)


def _watch(watched: int) -> None:
    """Wait in the guard until the supervisor has died."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tree.set_name("task-guard")
    os.closerange(0, watched)
    os.closerange(watched + 1, os.sysconf("SC_OPEN_MAX"))
    os.read(watched, 1)
