"""runner/lease: until when a slot's job may move, and its freezing after that.

Law: once the lease is over nothing of a job moves, unless its worker allows that. It goes on only when the worker,
after a look at the share, says until when, and never because a later extension came in. The clock counts on through
suspend. It may stop and continue the processes of the job, and have them guarded while they are stopped. The
supervisor loads it: kept small.

Touches: the clock.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress

from spoold.runner import tree
from spoold.runner.ice import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spoold.runner.freezer import Room
    from spoold.runner.run import Run

LOOK_S = 0.5  # poll() does not count the time in suspend, which CLOCK_BOOTTIME does
# The most time for one try to stop a whole tree, and for all tries; then the pause between two looks.
_STILL_PATIENCE_S, _FREEZING_S, _STILL_LOOK_S = 0.5, 1.5, 2.0
# How long the kernel may take to freeze a control group. One process that waits in the kernel, such as for a hung
# share, delays the kernel's report, and then signals do it.
_ROOM_PATIENCE_S = 0.25
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lease:
    """The lease of one slot; `until` in seconds of CLOCK_BOOTTIME, None for none."""

    def __init__(
        self,
        find: Callable[[Run], list[tree.Seen]],
        send: Callable[[dict[str, Any]], None],
        room: Room,
        guard: Callable[[Callable[[], None]], Guard] = Guard,
    ) -> None:
        """find: returns the processes of a job, with the one that may be about to begin it. room: their group."""
        self._find = find
        self._send = send
        self._room = room
        self._signals = ""  # why the frozen job was stopped by signals alone
        self._post = guard
        self._guard: Guard | None = None
        self._guards: set[int] = set()
        self.until: float | None = None

    @property
    def over(self) -> bool:
        """Whether the lease has run out."""
        return self.until is not None and time.clock_gettime(_BOOTTIME) >= self.until

    def pause_s(self, run: Run) -> float:
        """Return how long (s) the supervisor may wait before it looks at the lease again."""
        if self.until is None or run.frozen_at is not None or run.job["lost_share"] == "continue":
            return math.inf
        return min(LOOK_S, max(0.0, self.until - time.clock_gettime(_BOOTTIME)))

    def strike(self, run: Run) -> None:
        """Freeze or end the job: its lease is over, so another worker may get the task."""
        policy = run.job["lost_share"]
        if run.child is None or policy == "stop" or (policy == "freeze" and run.kill_at is not None):
            run.end("fenced", "the worker's lease ran out", time.monotonic())
        elif policy == "freeze" and run.frozen_at is None:
            run.frozen_at, wall = time.monotonic(), time.time()
            self._still(run)
            self._post_guard(run)
            self._send({"key": run.key, "frozen": wall, "signals": self._signals})

    def mind(self, run: Run, now: float) -> bool:
        """Keep a frozen job still, and end it when its time is over; return whether it was looked at."""
        assert run.frozen_at is not None
        if now - run.frozen_at >= run.job["freeze_s"]:
            run.end("fenced", f"the worker's lease was over for {run.job['freeze_s']:g} s", now)
        elif now >= run.next_look:
            if not self._still(run) and now - run.frozen_at >= _FREEZING_S:
                # We may not stop it, or it forks faster than we do: others may start the task at any moment.
                run.end("fenced", "the worker's lease ran out, and its processes could not be frozen", now)
            return True
        return False

    def thaw(self, run: Run, until: float) -> None:
        """Let a frozen job go on until then, if that is not past: the worker has seen that it holds the claim."""
        if time.clock_gettime(_BOOTTIME) >= until:
            self._send({"key": run.key, "frozen": time.time(), "signals": self._signals})
            return
        self.until = until if self.until is None else max(self.until, until)
        run.go_on(time.monotonic())
        self.melt(run)

    def melt(self, run: Run) -> None:
        """Continue all stopped processes, and dismiss the guard."""
        self._room.thaw()
        run.ice.melt()
        self._signals = ""
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None

    def guarded_by(self, pid: int) -> bool:
        """Return whether this dead process was a guard and no part of a job."""
        if pid not in self._guards:
            return False
        self._guards.remove(pid)
        return True

    def _post_guard(self, run: Run) -> None:
        with suppress(OSError):  # without a guard, only a successor's sweep is left
            self._guard = self._post(lambda: self._end(run))
            self._guards.add(self._guard.pid)

    def _end(self, run: Run) -> None:
        run.ice.end()
        self._room.clear()

    def _still(self, run: Run) -> bool:
        """Stop all processes that move, and plan the next look; return whether all are stopped."""
        cold = self._freeze(run)
        still = run.ice.stop(lambda: self._moving(run, cold), _STILL_PATIENCE_S)
        run.next_look = time.monotonic() + (_STILL_LOOK_S if still else 0.0)
        return still

    def _freeze(self, run: Run) -> bool:
        """Freeze the control group; False if its processes must be stopped by signals."""
        if self._signals:
            return False
        if self._room.freeze(_ROOM_PATIENCE_S):
            return True
        self._signals = self._room.trouble or "the kernel could not freeze all of the control group in time"
        # Frozen processes get SIGSTOP before the thaw, and take it before they move.
        run.ice.hold(self._moving(run, cold=False))
        self._room.thaw()
        return False

    def _moving(self, run: Run, cold: bool) -> list[tree.Seen]:
        """Return the processes that the control group has not frozen: if it is cold, only those that left it."""
        found = [seen for seen in self._find(run) if seen.pid not in self._guards]
        return [seen for seen in found if not self._room.holds(seen.pid)] if cold else found
