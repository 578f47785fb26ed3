"""runner/lease: until when a slot's job may move, and what becomes of it then.

Law: once the lease is over nothing of a job moves, unless its worker allows that; it goes on only when the worker,
which has looked at the share, says until when, and never because a later extension came in. The clock counts on
through suspend. It may stop and continue the processes of the job. The supervisor loads it: kept small.
"""

from __future__ import annotations

import math
import time

from spoold.runner import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spoold.runner.run import Run

LOOK_S = 0.5  # poll() does not count the time in suspend, which CLOCK_BOOTTIME does
# How long one try to stop a whole tree may take, how long all of them together, and how often it is looked at after.
_STILL_PATIENCE_S, _FREEZING_S, _STILL_LOOK_S = 0.5, 1.5, 2.0
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lease:
    """The lease of one slot; `until` in seconds of CLOCK_BOOTTIME, None for none."""

    def __init__(self, find: Callable[[Run], list[tree.Seen]], send: Callable[[dict[str, Any]], None]) -> None:
        """find: the processes of a job, with the one that may be about to begin it."""
        self._find = find
        self._send = send
        self.until: float | None = None

    @property
    def over(self) -> bool:
        """Whether it has run out."""
        return self.until is not None and time.clock_gettime(_BOOTTIME) >= self.until

    def pause_s(self, run: Run) -> float:
        """How long the supervisor may wait before it looks at the lease again."""
        if self.until is None or run.frozen_at is not None or run.job["lost_share"] == "continue":
            return math.inf
        return min(LOOK_S, max(0.0, self.until - time.clock_gettime(_BOOTTIME)))

    def strike(self, run: Run) -> None:
        """The lease is over: others may be given the task."""
        policy = run.job["lost_share"]
        if run.child is None or policy == "stop" or (policy == "freeze" and run.kill_at is not None):
            run.end("fenced", "the worker's lease ran out", time.monotonic())
        elif policy == "freeze" and run.frozen_at is None:
            run.frozen_at = time.monotonic()
            self._still(run)
            self._send({"key": run.key, "frozen": time.time()})

    def mind(self, run: Run, now: float) -> bool:
        """Sees to a frozen job: that it stands still, and not for ever; whether it was looked at."""
        assert run.frozen_at is not None
        if now - run.frozen_at >= run.job["freeze_s"]:
            run.end("fenced", f"the share was silent for {run.job['freeze_s']:g} s after the lease", now)
        elif now >= run.next_look:
            if not self._still(run) and now - run.frozen_at >= _FREEZING_S:
                # Not ours to stop, or quicker to fork than we are: others may start the task at any moment.
                run.end("fenced", "the worker's lease ran out, and its processes could not be frozen", now)
            return True
        return False

    def thaw(self, run: Run, until: float) -> None:
        """The worker knows that the claim is its own: a frozen job may go on until then; after that it may not."""
        if time.clock_gettime(_BOOTTIME) >= until:
            self._send({"key": run.key, "frozen": time.time()})
            return
        self.until = until if self.until is None else max(self.until, until)
        run.go_on(time.monotonic())
        run.ice.melt()

    def _still(self, run: Run) -> bool:
        """Stops all of it that moves; what cannot be stopped at once is looked at again soon. Whether all stands."""
        still = run.ice.stop(lambda: self._find(run), _STILL_PATIENCE_S)
        run.next_look = time.monotonic() + (_STILL_LOOK_S if still else 0.0)
        return still
