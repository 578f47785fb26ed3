"""Reports frozen tasks, while the loop itself may hang in the share: a log line when they freeze, one when they go
on, and the status between.

Law: it goes by the lease, at whose end supervisors freeze their jobs. The thread that never touches the share calls
it, so nothing here waits for the loop's thread. Times are seconds.

Touches: the clock.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from spoold.protocol.amount import amount, length

log = logging.getLogger("spoold")

LOOK_S = 1.0


class Frozen(Protocol):
    """The questions that any thread may ask a runner."""

    def overdue_s(self) -> float | None:
        """Return for how long the lease has been over, negative before; None without one."""
        ...

    def still(self) -> Mapping[str, float]:
        """Return the jobs that do not move, and how long each may stay frozen."""
        ...

    def running(self) -> set[str]:
        """Return all jobs that are not over."""
        ...


class Freezing:
    """The frozen tasks of one worker."""

    def __init__(self, runner: Callable[[], Frozen | None], lease_s: float) -> None:
        """runner: the present one. lease_s: how long a beat lets tasks run."""
        self._runner = runner
        self._lease_s = lease_s
        self._since: dict[str, float] = {}
        self._over: set[str] = set()  # frozen for as long as they may be

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

    def look(self) -> str:
        """Log changes; return the status text on tasks that are frozen now, '' for none."""
        runner, now = self._runner(), time.monotonic()
        overdue_s = max(0.0, (runner.overdue_s() if runner is not None else None) or 0.0)
        still = runner.still() if runner is not None else {}
        self._over &= still.keys()
        self._forget(still, runner.running() if runner is not None else set(), now)
        new = still.keys() - self._since.keys() - self._over
        self._since |= dict.fromkeys(new, now - overdue_s)
        most = length(max((still[key] for key in self._since), default=0.0))
        if new:
            silent = length(overdue_s + self._lease_s)
            what = f"{_tasks(len(new), 'is', 'are')} frozen until it answers, for at most {most}"
            log.warning("the share has been silent for %s; %s", silent, what)
        if not self._since:
            return ""
        frozen_s = now - min(self._since.values())
        frozen = f"{_tasks(len(self._since), 'has', 'have')} been frozen for {length(frozen_s)}"
        return f"{frozen}, until the share answers, for at most {most}"

    def _forget(self, still: Mapping[str, float], running: set[str], now: float) -> None:
        spent = {key for key, since in self._since.items() if key in still and now - since >= still[key]}
        gone = self._since.keys() - still.keys()
        frozen_s = now - min((self._since[key] for key in spent | gone), default=now)
        for key in spent | gone:
            del self._since[key]
        self._over |= spent
        if spent:
            log.warning("%s killed: frozen for %s", _tasks(len(spent), "is", "are"), length(frozen_s))
        if on := gone & running:
            log.info("the share answers; %s on, after %s", _tasks(len(on), "goes", "go"), length(frozen_s))
        if ended := gone - running:
            log.info("%s ended, after %s frozen", _tasks(len(ended), "has", "have"), length(frozen_s))


def _tasks(number: int, one: str, more: str) -> str:
    return f"{amount(number, 'task')} {one if number == 1 else more}"
