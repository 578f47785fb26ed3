"""Reports frozen tasks, while the loop itself may hang in the share: a log line when they freeze, one when they go
on, and the status between.

Law: it goes by the lease, at whose end supervisors freeze their jobs. The thread that never touches the share calls
it, so nothing here waits for the loop's thread. A task goes on when its worker has thawed it, and not before; one
that is being killed has not gone on. Times are seconds.

Touches: the clock.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from spoold.daemon.pulse import Pulse
from spoold.protocol.amount import amount, length
from spoold.rules.share.blame import Blame, Cause, Spent, judge

log = logging.getLogger("spoold")

LOOK_S = 1.0
# A figure is kept for each look; more than this many looks cover any lease.
_LOOKS = 300
_WHO = "this worker"
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Frozen(Protocol):
    """The questions that any thread may ask a runner."""

    def overdue_s(self) -> float | None:
        """Return for how long the lease has been over, negative before; None without one."""
        ...

    def still(self) -> Mapping[str, float]:
        """Return the jobs that do not move, and how long each may stay frozen."""
        ...

    def thawed(self) -> Collection[str]:
        """Return the jobs that were let go on since they froze."""
        ...

    def running(self) -> set[str]:
        """Return all jobs that are not over."""
        ...


class Freezing:
    """The frozen tasks of one worker."""

    def __init__(self, runner: Callable[[], Frozen | None], lease_s: float, pulse: Pulse) -> None:
        """runner: the present one. lease_s: how long a beat lets tasks run. pulse: where the worker's time goes."""
        self._runner = runner
        self._lease_s = lease_s
        self._pulse = pulse
        self._since: dict[str, float] = {}
        self._over: set[str] = set()  # frozen for as long as they may be
        self._looks: deque[tuple[float, Spent]] = deque(maxlen=_LOOKS)
        self._blame = Blame(Cause.UNKNOWN, "")

    @property
    def due_s(self) -> float:
        """The most time until the next look."""
        runner = self._runner()
        overdue_s = runner.overdue_s() if runner is not None else None
        if self._since:
            return LOOK_S
        if runner is None or overdue_s is None or overdue_s > 0 or not runner.running():
            return math.inf
        return max(0.1, -overdue_s + 0.05)

    def look(self, error: str | None = None) -> str:
        """Log changes; return the status text on tasks that are frozen now, '' for none. error: of the last step."""
        runner, now = self._runner(), time.monotonic()
        overdue_s = max(0.0, (runner.overdue_s() if runner is not None else None) or 0.0)
        still = runner.still() if runner is not None else {}
        self._looks.append((time.clock_gettime(_BOOTTIME), self._pulse.spent()))
        self._over &= still.keys()
        running = runner.running() if runner is not None else set()
        self._forget(still, running, runner.thawed() if runner is not None else (), now)
        new = still.keys() - self._since.keys() - self._over
        if new:
            spent = self._spent(overdue_s + self._lease_s)
            self._blame = judge(spent, overdue_s + self._lease_s, _WHO, self._pulse.part, error or "")
            # The time for which a job may be frozen stands still in suspend.
            self._since |= dict.fromkeys(new, now - max(0.0, overdue_s - spent.asleep_s))
        most = length(max((still.get(key, 0.0) for key in self._since), default=0.0))
        if new:
            what = f"{_tasks(len(new), 'is', 'are')} frozen {self._until}, for at most {most}"
            log.warning("%s; %s", self._blame.text, what)
        if not self._since:
            return ""
        frozen_s = now - min(self._since.values())
        frozen = f"{_tasks(len(self._since), 'has', 'have')} been frozen for {length(frozen_s)}"
        return f"{frozen}, {self._until}, for at most {most}"

    @property
    def by_share(self) -> bool:
        """Whether the share is why they are frozen."""
        return self._blame.cause is Cause.SHARE

    @property
    def _until(self) -> str:
        return "until the share answers" if self.by_share else f"until {_WHO} has beaten again"

    def _spent(self, silent_s: float) -> Spent:
        """Return where the time since the last beat went: since the last look before it."""
        ended, spent = self._looks[-1]
        begun = next((old for at, old in reversed(self._looks) if at <= ended - silent_s), self._looks[0][1])
        return spent.since(begun)

    def _forget(self, still: Mapping[str, float], running: set[str], thawed: Collection[str], now: float) -> None:
        spent = {key for key, since in self._since.items() if key in still and now - since >= still[key]}
        on = {key for key in self._since if key in thawed and key in running}
        ended = self._since.keys() - running
        frozen_s = now - min((self._since[key] for key in spent | on | ended), default=now)
        for key in spent | on | ended:
            del self._since[key]
        self._over |= spent
        if spent:
            log.warning("%s killed: frozen for %s", _tasks(len(spent), "is", "are"), length(frozen_s))
        if on:
            log.info("%s on, after %s", _tasks(len(on), "goes", "go"), length(frozen_s))
        if ended - spent:
            log.info("%s ended, after %s frozen", _tasks(len(ended - spent), "has", "have"), length(frozen_s))


def _tasks(number: int, one: str, more: str) -> str:
    return f"{amount(number, 'task')} {one if number == 1 else more}"
