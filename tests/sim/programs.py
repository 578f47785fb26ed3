"""What tasks do when they run: how long, and which exit code, by a hash of seed, id and attempt.

A runner as a worker sees it, on the machine's own clocks. It keeps the lease as supervisors do: a command whose lease
has run out is killed by its supervisor, whatever has become of the worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spoold.system.clock import Clock
from spoold.worker.job import Ending, Job, Kind
from tests.sim.weather import Weather

ENDLESS = "endless"  # tasks whose id begins so go on until they are stopped


@dataclass(slots=True)
class Execution:
    """One run of a task's command, in true time (s); end is None while it runs."""

    task: str
    attempt: int
    worker: str
    begin: float
    end: float | None = None


@dataclass(slots=True)
class Running:
    """A job under way: when it will be done and when its lease ends (s, boottime of the machine)."""

    job: Job
    begin: float
    done: float
    execution: Execution


class Programs:
    """The runner of one worker. `executions` is the world's record of what ran when."""

    def __init__(self, clock: Clock, true_now: object, weather: Weather, worker: str, executions: list[Execution]):
        self._clock = clock
        self._true_now = true_now
        self._weather = weather
        self._worker = worker
        self._executions = executions
        self._live: dict[str, Running] = {}
        self._ended: list[Ending] = []
        self._lease: float | None = None

    def start(self, job: Job) -> None:
        task, _, attempt = job.key.rpartition(".")
        length_s = 0.05 + 3.0 * self._weather.draw("length", job.key) ** 3
        if task.startswith(ENDLESS):
            length_s = math.inf
        execution = Execution(task, int(attempt), self._worker, self._true_now())  # type: ignore[operator]
        self._executions.append(execution)
        begin = self._clock.boottime()
        self._live[job.key] = Running(job, begin, begin + length_s, execution)

    def poll(self) -> list[Ending]:
        self.lapse()
        ended, self._ended = self._ended, []
        return ended

    def lapse(self) -> None:
        """Programs end and leases run out by themselves."""
        now = self._clock.boottime()
        for key, run in list(self._live.items()):
            if self._lease is not None and self._lease <= min(now, run.done):
                self._end(key, "fenced", None, self._lease)
            elif run.done <= now:
                self._end(key, "exited", exit_code(self._weather, key), run.done)

    def stop(self, key: str, why: str, grace_s: float) -> None:
        self.lapse()
        if key in self._live:
            self._end(key, "stopped", None, self._clock.boottime())

    def extend(self, until_boottime_s: float) -> None:
        self.lapse()
        self._lease = until_boottime_s

    def wait(self, timeout_s: float) -> None:
        """The machine's loop sleeps in virtual time."""

    def wake(self) -> None:
        """Nobody waits."""

    def running(self) -> set[str]:
        return {*self._live, *(ending.key for ending in self._ended)}

    def usage(self) -> dict[str, int]:
        return dict.fromkeys(self._live, 1 << 20)

    def close(self, grace_s: float) -> list[Ending]:
        for key in list(self._live):
            self.stop(key, "the worker leaves", grace_s)
        return self.poll()

    def _end(self, key: str, kind: Kind, code: int | None, moment: float) -> None:
        run = self._live.pop(key)
        # Both clocks run at one rate, so what was left by one is left by the other.
        ended = self._true_now() - max(0.0, self._clock.boottime() - moment)  # type: ignore[operator]
        # Begun after its lease was over: its supervisor ended it at once.
        run.execution.end = max(ended, run.execution.begin)
        wall = self._clock.wall()
        self._ended.append(
            Ending(
                key, kind, code, None, kind, wall, wall, moment - run.begin, stdout=f"{key} said so", output_bytes=1
            )
        )


def exit_code(weather: Weather, key: str) -> int:
    """How an attempt ends. The task's fate by its id: most are well, some need more tries, some never are."""
    task = key.rpartition(".")[0]
    fate = weather.draw("fate", task)
    if fate < 0.60:
        return 0
    if fate < 0.75:
        return 0 if weather.draw("try", key) < 0.5 else 1
    if fate < 0.85:
        return 0 if weather.draw("later", key) < 0.5 else 75
    return 65 if fate < 0.92 else 1
