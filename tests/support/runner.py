"""A runner without processes: jobs run until a test says how they end, on a clock that only a test moves.

Law: it keeps every promise of `RunnerPort` that a worker relies on, timeouts and the lease included, and nothing
of a job runs any more once its ending is polled.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from spoold.rules.workers.slots import DEPTH
from spoold.runner.job import Ending, Job, Kind, NoSlot
from spoold.system.clock import Clock
from spoold.system.scratch import Scratch


@dataclass(slots=True)
class Live:
    """A job under way, and when it began: monotonic and wall, in seconds. frozen_at: monotonic and wall, too."""

    job: Job
    began: float
    began_wall: float
    frozen_at: tuple[float, float] | None = None
    frozen_s: float = 0.0


class FakeRunner:
    """Runs nothing; `finish` is the program's own end."""

    def __init__(self, clock: Clock, scratch: Scratch, slots: int) -> None:
        self.clock = clock
        self.scratch = scratch
        self.slots = slots
        self.lent: set[str] = set()
        self.live: dict[str, Live] = {}
        self.behind: list[Job] = []
        self.started: list[Job] = []
        self.memory: dict[str, int] = {}
        self.refuses: Exception | None = None
        self._ended: list[Ending] = []
        self._until: float | None = None

    def start(self, job: Job) -> None:
        if self.refuses is not None:
            raise self.refuses
        if len(self.live) + len(self.behind) >= self.slots * (1 + DEPTH):
            raise NoSlot("no free slot")
        if job.key in self.running():
            raise ValueError(f"{job.key} runs already")
        self.behind.append(job)
        self._go_on()

    def poll(self) -> list[Ending]:
        self._lapse()
        ended, self._ended = self._ended, []
        return ended

    def stop(self, key: str, why: str, grace_s: float) -> None:
        del grace_s  # whatever is asked to stop here stops at once
        self._end(key, "stopped", why)

    def extend(self, until_boottime_s: float) -> None:
        self._lapse()
        self._until = until_boottime_s

    def frozen(self) -> dict[str, float]:
        self._lapse()
        return {key: live.frozen_at[1] for key, live in self.live.items() if live.frozen_at is not None}

    def thaw(self, key: str, until_boottime_s: float) -> None:
        live = self.live.get(key)
        if live is not None and live.frozen_at is not None and self.clock.boottime() < until_boottime_s:
            live.frozen_s += self.clock.monotonic() - live.frozen_at[0]
            live.frozen_at = None
            self._until = max(self._until or until_boottime_s, until_boottime_s)

    def wait(self, timeout_s: float) -> None:
        """There is nothing to wait for: the test moves the clock."""

    def wake(self) -> None:
        """Nobody waits."""

    def running(self) -> set[str]:
        self._lapse()
        return {*self.live, *self.waiting(), *(ending.key for ending in self._ended)}

    def waiting(self) -> set[str]:
        return {job.key for job in self.behind}

    def engaged(self, since_s: float) -> int:
        now = self.clock.monotonic()
        return sum(now - live.began >= since_s for key, live in self.live.items() if key not in self.lent)

    def lend(self, keys: Collection[str]) -> None:
        self.lent = set(keys)
        self._go_on()

    def relieve(self, after_s: float) -> None:
        if self.engaged(after_s) == self.slots:
            for key in self.waiting():
                self._end(key, "stopped", "the task before it takes long")

    def usage(self) -> dict[str, int]:
        return {key: self.memory.get(key, 1 << 20) for key in self.live}

    def close(self, grace_s: float) -> list[Ending]:
        for key in [*self.waiting(), *self.live]:
            self.stop(key, "the worker leaves", grace_s)
        return self.poll()

    def finish(
        self, key: str, *, exit_code: int | None = 0, output: str = "", kind: Kind = "exited", **more: Any
    ) -> None:
        """The job ends; what it printed is in its output file. Errors: KeyError when it does not run here."""
        self._lapse()
        if key not in self.live:
            raise KeyError(f"{key} does not run here; running: {sorted(self.live)}")
        if output:
            self.scratch.write(key, "output", output.encode())
        self._end(
            key, kind, more.pop("message", ""), exit_code=exit_code, **{"tail": output, "stdout": output, **more}
        )

    def _go_on(self) -> None:
        """What waits takes the slots that are free."""
        while self.behind and len(self.live) - len(self.lent & self.live.keys()) < self.slots:
            job = self.behind.pop(0)
            self.live[job.key] = Live(job, self.clock.monotonic(), self.clock.wall())
            self.started.append(job)

    def _lapse(self) -> None:
        """Timeouts and the lease strike by themselves."""
        if self._until is not None and self.clock.boottime() >= self._until:
            for job in list(self.behind):
                self._end(job.key, "fenced", "the worker's lease ended")
        for key, live in list(self.live.items()):
            limit, now = live.job.timeout_s, self.clock.monotonic()
            if live.frozen_at is not None:
                if now - live.frozen_at[0] >= live.job.freeze_s:
                    self._end(key, "fenced", "it was frozen for too long")
            elif self._until is not None and self.clock.boottime() >= self._until:
                if live.job.lost_share == "freeze":
                    live.frozen_at = now, self.clock.wall()
                elif live.job.lost_share == "stop":
                    self._end(key, "fenced", "the worker's lease ended")
            elif limit is not None and now - live.began - live.frozen_s >= limit:
                self._end(key, "timeout", f"ran longer than {limit:g} s")

    def _end(self, key: str, kind: Kind, message: str, *, exit_code: int | None = None, **more: Any) -> None:
        live = self.live.pop(key, None)
        for job in [job for job in self.behind if job.key == key]:
            self.behind.remove(job)
            live = Live(job, self.clock.monotonic(), self.clock.wall())
        if live is None:
            return
        frozen_s = live.frozen_s + (self.clock.monotonic() - live.frozen_at[0] if live.frozen_at is not None else 0.0)
        fields: dict[str, Any] = {
            "signal": None,
            "started_at": live.began_wall,
            "ended_at": self.clock.wall(),
            "duration_s": self.clock.monotonic() - live.began - frozen_s,
            "frozen_s": frozen_s,
            "output_bytes": len(more.get("tail", "")),
            **more,
        }
        self._go_on()
        self._ended.append(Ending(key=key, kind=kind, exit_code=exit_code, message=message, **fields))
