"""What tasks do when they run: how long, and which exit code, by a hash of seed, id and attempt.

In some worlds most tasks are over within milliseconds; there workers claim ahead, and what they claim waits in slots.

A runner as a worker sees it, on the machine's own clocks. It keeps the lease as supervisors do: a command whose lease
has run out is killed by its supervisor, whatever has become of the worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spoold.rules.ahead import DEPTH, PATIENCE_S
from spoold.system.clock import Clock
from spoold.worker.job import Ending, Job, Kind
from tests.sim.weather import Weather

BRISK_S = 0.002
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

    def __init__(
        self, clock: Clock, true_now: object, weather: Weather, worker: str, executions: list[Execution], slots: int
    ) -> None:
        self._clock = clock
        self._true_now = true_now
        self._weather = weather
        self._worker = worker
        self._executions = executions
        self._live: dict[str, Running] = {}
        self._slots: list[list[Job]] = [[] for _ in range(slots)]  # the first of each runs
        self.brisk = weather.draw("brisk") < 0.5
        self._ended: list[Ending] = []
        self._lease: float | None = None

    def start(self, job: Job) -> None:
        self.lapse()
        slot = min(self._slots, key=lambda jobs: (self._age(jobs) >= PATIENCE_S, len(jobs)))
        if len(slot) > DEPTH:
            raise RuntimeError("no slot is free")
        slot.append(job)
        if len(slot) == 1:
            self._executions.append(self._begin(job, self._clock.boottime()))

    def _begin(self, job: Job, moment: float) -> Execution:
        """It is the turn of the first job of a slot."""
        task, _, attempt = job.key.rpartition(".")
        length_s = 0.05 + 3.0 * self._weather.draw("length", job.key) ** 3
        if task.startswith(ENDLESS):
            length_s = math.inf
        elif self.brisk and self._weather.draw("brisk", job.key) < 0.9:
            length_s = BRISK_S
        execution = Execution(task, int(attempt), self._worker, self._truly(moment))
        self._live[job.key] = Running(job, moment, moment + length_s, execution)
        return execution

    def poll(self) -> list[Ending]:
        self.lapse()
        ended, self._ended = self._ended, []
        return ended

    def lapse(self) -> None:
        """Programs end and leases run out by themselves."""
        now = self._clock.boottime()
        for slot in self._slots:
            while slot:
                run = self._live[slot[0].key]
                if self._lease is not None and self._lease <= min(now, run.done):
                    self._end(slot, "fenced", None, max(self._lease, run.begin))
                elif run.done <= now:
                    self._end(slot, "exited", exit_code(self._weather, slot[0].key), run.done)
                else:
                    break

    def stop(self, key: str, why: str, grace_s: float) -> None:
        self.lapse()
        for slot in self._slots:
            if slot and slot[0].key == key:
                self._end(slot, "stopped", None, self._clock.boottime())
            else:
                self._withdraw(slot, {key})

    def relieve(self, after_s: float) -> None:
        self.lapse()
        for slot in self._slots:
            if self._age(slot) >= after_s:
                self._withdraw(slot, self.waiting())

    def _withdraw(self, slot: list[Job], keys: set[str]) -> None:
        """Those of these jobs that wait in the slot never begin."""
        wall = self._clock.wall()
        for job in [job for job in slot[1:] if job.key in keys]:
            slot.remove(job)
            self._ended.append(Ending(job.key, "stopped", None, None, "never began", wall, wall, 0.0))

    def engaged(self, since_s: float) -> int:
        self.lapse()
        return sum(self._age(slot) >= since_s for slot in self._slots)

    def _age(self, slot: list[Job]) -> float:
        return self._clock.boottime() - self._live[slot[0].key].begin if slot else 0.0

    def waiting(self) -> set[str]:
        return {job.key for slot in self._slots for job in slot[1:]}

    def extend(self, until_boottime_s: float) -> None:
        self.lapse()
        self._lease = until_boottime_s

    def wait(self, timeout_s: float) -> None:
        """The machine's loop sleeps in virtual time."""

    def wake(self) -> None:
        """Nobody waits."""

    def running(self) -> set[str]:
        return {*self._live, *self.waiting(), *(ending.key for ending in self._ended)}

    def usage(self) -> dict[str, int]:
        return dict.fromkeys(self._live, 1 << 20)

    def close(self, grace_s: float) -> list[Ending]:
        for key in [*self.waiting(), *self._live]:
            self.stop(key, "the worker leaves", grace_s)
        return self.poll()

    def _truly(self, moment: float) -> float:
        """A moment on the machine's clock, in true time: both run at one rate."""
        return self._true_now() - max(0.0, self._clock.boottime() - moment)  # type: ignore[no-any-return, operator]

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        """The first job of a slot is over, and the next begins."""
        key = slot.pop(0).key
        run = self._live.pop(key)
        run.execution.end = max(self._truly(moment), run.execution.begin)
        wall = self._clock.wall()
        self._ended.append(
            Ending(
                key, kind, code, None, kind, wall, wall, moment - run.begin, stdout=f"{key} said so", output_bytes=1
            )
        )
        if slot:
            execution = self._begin(slot[0], moment)
            if self._lease is None or moment < self._lease:  # else its supervisor does not let it begin
                self._executions.append(execution)


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
