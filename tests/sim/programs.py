"""What tasks do when they run: how long, and which exit code, by a hash of seed, id and attempt.

In some worlds most tasks are over within milliseconds; there workers claim ahead, and what they claim waits in slots.
In some one machine lacks the programs of some tasks, which the other has.

A runner as a worker sees it, on the machine's own clocks. It keeps the lease as supervisors do: a command whose lease
has run out is killed by its supervisor, whatever has become of the worker.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from spoold.rules.workers.slots import has_room, preference
from spoold.runner.job import Ending, Job, Kind, NoSlot
from spoold.system.clock import Clock
from spoold.system.scratch import Scratch
from spoold.system.slot_loans import NO_LOANS, Loans
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather

BRISK_S = 0.002
# The machine that may lack programs, and how many of the tasks' programs it lacks then.
LACKING, LACKED = "w1", 0.4
BRISK_WORLDS = 0.5  # the share of worlds in which most tasks are so short
LONGEST_S = 3.0
MODULE = "work"  # of the callables that tasks name
ENDLESS = "endless"  # tasks whose id begins so go on until they are stopped


@dataclass(slots=True)
class Execution:
    """One run of a task's command, in true time (s); end is None while it runs. rests: when it was frozen, from and
    until; the last has no end while it is.
    """

    task: str
    attempt: int
    worker: str
    begin: float
    end: float | None = None
    rests: list[tuple[float, float | None]] = field(default_factory=list)

    def active(self, now: float) -> list[tuple[float, float]]:
        """When it moved, from and until."""
        found, since = [], self.begin
        end = now if self.end is None else self.end
        for rest, until in self.rests:
            found.append((since, rest))
            since = end if until is None else until
        return [*found, (since, end)]


@dataclass(slots=True)
class Running:
    """A job under way: when it began and will be done, and since when it is frozen (s, boottime of the machine)."""

    job: Job
    begin: float
    done: float
    execution: Execution
    frozen_at: float | None = None


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
        self.brisk = weather.draw("brisk") < BRISK_WORLDS
        self._lacks = lacking(weather) and worker.startswith(f"{LACKING}-")
        self._ended: list[Ending] = []
        self._lease: float | None = None
        self.scratch: Scratch | None = None  # of the worker, for attempts that write a result

    loans: Loans = NO_LOANS

    def attach(self, scheduler: Scheduler, server: Server) -> None:
        """What a program that does more than to take its time has to know."""

    def start(self, job: Job) -> None:
        self.lapse()
        slot = min(self._slots, key=lambda jobs: preference(len(jobs), self._age(jobs), other=False))
        if not has_room(len(slot)):
            raise NoSlot("no slot is free")
        slot.append(job)
        if len(slot) == 1:
            self._executions.append(self._begin(job, self._clock.boottime()))

    def _begin(self, job: Job, moment: float) -> Execution:
        """It is the turn of the first job of a slot."""
        task, _, attempt = job.key.rpartition(".")
        execution = Execution(task, int(attempt), self._worker, self._truly(moment))
        self._live[job.key] = Running(job, moment, moment + self._lasts_s(task, job.key), execution)
        return execution

    def _lasts_s(self, task: str, key: str) -> float:
        if task.startswith(ENDLESS):
            return math.inf
        if self._missed(task) or (self.brisk and self._weather.draw("brisk", key) < 0.9):
            return BRISK_S
        return 0.05 + LONGEST_S * self._weather.draw("length", key) ** 3

    def moves(self, key: str) -> bool:
        """Whether this job runs, and is not frozen."""
        self.lapse()
        run = self._live.get(key)
        return run is not None and run.frozen_at is None

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
                if run.frozen_at is not None:
                    if now - run.frozen_at < run.job.freeze_s:
                        break
                    self._end(slot, "fenced", None, run.frozen_at + run.job.freeze_s)
                elif self._lapses(run, now):
                    assert self._lease is not None
                    self._withdraw(slot, self.waiting())
                    if run.job.lost_share == "stop":
                        self._end(slot, "fenced", None, max(self._lease, run.begin))
                    else:
                        run.frozen_at = max(self._lease, run.begin)
                        run.execution.rests.append((self._truly(run.frozen_at), None))
                elif run.done <= now and self._missed(slot[0].key.rpartition(".")[0]):
                    self._end(slot, "spawn_failed", 127, run.done)
                elif run.done <= now:
                    self._end(slot, "exited", exit_code(self._weather, slot[0].key), run.done)
                else:
                    break

    def _lapses(self, run: Running, now: float) -> bool:
        """Whether the lease has run out, or did before the job was done, and the job minds."""
        over = self._lease is not None and self._lease <= min(now, run.done)
        return over and run.job.lost_share != "continue"

    def frozen(self) -> dict[str, float]:
        self.lapse()
        date_at_boot = self._clock.wall() - self._clock.boottime()
        return {key: date_at_boot + run.frozen_at for key, run in self._live.items() if run.frozen_at is not None}

    def thaw(self, key: str, until_boottime_s: float) -> None:
        self.lapse()
        run, now = self._live.get(key), self._clock.boottime()
        if run is None or run.frozen_at is None or now >= until_boottime_s:
            return
        run.done += now - run.frozen_at
        run.begin += now - run.frozen_at
        run.frozen_at = None
        run.execution.rests[-1] = (run.execution.rests[-1][0], self._truly(now))
        self._lease = until_boottime_s if self._lease is None else max(self._lease, until_boottime_s)

    def _missed(self, task: str) -> bool:
        """Whether this machine lacks the task's program."""
        return self._lacks and self._weather.draw("lacked", task) < LACKED

    def stop(self, key: str, why: str, grace_s: float) -> None:
        self.lapse()
        for slot in self._slots:
            if slot and slot[0].key == key:
                self._end(slot, "stopped", None, self._clock.boottime())
            else:
                self._withdraw(slot, {key})

    def lend(self, keys: Collection[str]) -> None:
        assert not keys, "no simulated program waits for others"

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


def lacking(weather: Weather) -> bool:
    """Whether in this world one machine lacks programs."""
    return weather.draw("lacking") < 0.3


def handled(weather: Weather) -> bool:
    """Whether in this world the workers' handlers run the tasks, so that a whole type may be left to others."""
    return lacking(weather) and weather.draw("handled") < 0.5


def called(weather: Weather) -> bool:
    """Whether in this world tasks name callables, so that a whole module may be left to others."""
    return lacking(weather) and not handled(weather) and weather.draw("called") < 0.5


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
