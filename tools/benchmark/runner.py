"""A runner that runs nothing: every job has ended well by the time it was started, and is in the ledger.

It stands behind `RunnerPort` where a worker's own work is to be measured, without processes. Law: it notes each
start, so that a task that is started twice is seen.
"""

from __future__ import annotations

import time

from spoold.runner.job import Call, Ending, Job
from tools.benchmark import ledger


class InstantRunner:
    """Ends every job at once. hold: jobs end only when `release` is called, as many as then run."""

    def __init__(self, *, hold: bool = False) -> None:
        self._hold = hold
        self._running: list[str] = []
        self._ended: list[Ending] = []

    def start(self, job: Job) -> None:
        if isinstance(job.run, Call) and len(job.run.args) > 1:
            folder, number = job.run.args[:2]
            if isinstance(folder, str) and isinstance(number, int):
                ledger.note(folder, number)
        self._running.append(job.key)
        if not self._hold:
            self.release()

    def release(self) -> int:
        """Everything that runs ends now; how many that were."""
        now = time.time()
        for key in self._running:
            self._ended.append(
                Ending(
                    key=key,
                    kind="exited",
                    exit_code=0,
                    signal=None,
                    message="returned",
                    started_at=now,
                    ended_at=now,
                    duration_s=0.0,
                    value=0,
                )
            )
        released = len(self._running)
        self._running.clear()
        return released

    def poll(self) -> list[Ending]:
        ended, self._ended = self._ended, []
        return ended

    def stop(self, key: str, why: str, grace_s: float) -> None:
        """What runs here ends by itself."""

    def extend(self, until_boottime_s: float) -> None:
        """Nothing runs for so long that a lease could end."""

    def frozen(self) -> dict[str, float]:
        """Nothing is frozen either."""
        return {}

    def thaw(self, key: str, until_boottime_s: float) -> None:
        """There is nothing to thaw."""

    def wait(self, timeout_s: float) -> None:
        time.sleep(min(timeout_s, 0.002))

    def wake(self) -> None:
        """Nobody waits for long."""

    def waiting(self) -> set[str]:
        """Nothing waits for another."""
        return set()

    def engaged(self, since_s: float) -> int:
        """What is held here counts as just begun."""
        return 0

    def lend(self, keys: object) -> None:
        """Nothing here waits for other tasks."""

    def relieve(self, after_s: float) -> None:
        """Nothing waits for another."""

    def running(self) -> set[str]:
        return {*self._running, *(ending.key for ending in self._ended)}

    def usage(self) -> dict[str, int]:
        return {}

    def close(self, grace_s: float) -> list[Ending]:
        self.release()
        return self.poll()
