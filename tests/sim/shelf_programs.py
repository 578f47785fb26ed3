"""Tasks that put entries into the context of their batch, and save steps, while they run: the world `shelves`.

Each attempt is a program of its own with a connection of its own, over the mount of its worker's machine. It goes on
from the last step, adds to it, puts entries and reads them, and tries again what did not go well. It ends with its
machine, but some go on when their attempt was taken back. Some write steps by hand, and damage them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from unittest.mock import patch

from spoold.client.context_and_steps import Conflict, SharedContext, Steps
from spoold.client.spool_client import SpoolClient
from spoold.protocol import step
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.step import StepName
from spoold.runner.job import Job, Kind
from tests.sim.machine import Machine
from tests.sim.mount import Mount
from tests.sim.programs import Execution, Programs, Running
from tests.sim.scheduler import Process, Scheduler
from tests.sim.server import Server
from tests.sim.shelves import ROOT, ShelfLaws, batch_of
from tests.sim.weather import Weather

STEPS = 6
NAMES = ("plan", "log")
# The share of the attempts that go on, for so long (s), when they are no longer their task's; of those that stop in
# the middle; of the pauses that are long, and how long (s); of the steps that are written by hand, and damaged.
OUTLIVE, OUTLIVE_S = 0.7, 12.0
STOP, LONG, LONG_S, DAMAGED = 0.4, 0.08, 20.0, 0.35
AGAIN_S = 0.5
T = TypeVar("T")


@dataclass(slots=True)
class Seat:
    """A program on a machine, as its mount knows it: it is cut off with the machine, and ends with it."""

    name: str
    machine: Machine
    asleep: Callable[[float], None]

    @property
    def cut_until(self) -> float:
        return self.machine.cut_until

    @cut_until.setter
    def cut_until(self, until: float) -> None:
        self.machine.cut_until = until

    @property
    def away_until(self) -> float:
        return self.machine.away_until

    @away_until.setter
    def away_until(self, until: float) -> None:
        self.machine.away_until = until

    def freeze(self, seconds: float) -> None:
        """The program stands still."""
        self.asleep(seconds)

    def fall(self) -> None:
        """The machine loses its power."""
        self.machine.fall()


class ShelfPrograms(Programs):
    """The runner of one worker, all of whose tasks put entries and save steps."""

    def attach(self, scheduler: Scheduler, server: Server) -> None:
        self.scheduler, self.server = scheduler, server
        self.writing: dict[str, Process] = {}

    def _begin(self, job: Job, moment: float) -> Execution:
        execution = super()._begin(job, moment)
        if not self._missed(job.key.rpartition(".")[0]):
            self._live[job.key].done = math.inf
            self.writing[job.key] = self.scheduler.spawn(f"{job.key} on {self._worker}", lambda: self._work(job.key))
        return execution

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        program = self.writing.pop(slot[0].key, None)
        if program is not None and not self.outlives(slot[0].key):
            self.scheduler.kill(program)
        super()._end(slot, kind, code, moment)

    def run_of(self, attempt: str) -> Running | None:
        """What is known of an attempt that is under way here."""
        self.lapse()
        return self._live.get(attempt)

    def outlives(self, attempt: str) -> bool:
        """Whether it goes on when it should not. On a local disk whoever goes dark takes it along."""
        return not self.server.rolls_back and self._weather.draw("outlives", attempt) < OUTLIVE

    def _work(self, attempt: str) -> None:
        """The program of one attempt."""
        Writer(self, attempt).work()
        run = self._live.get(attempt)
        if run is not None:
            run.done = self._clock.boottime()

    def seat(self, attempt: str) -> Mount:
        """A mount for the program of this attempt."""
        laws = self.server.onlooker
        assert isinstance(laws, ShelfLaws)
        machine = laws.conduct.machines[self._worker.partition("-")[0]]
        assert isinstance(machine, Machine)
        seat = Seat(f"{self._worker}-{attempt}", machine, self.scheduler.sleep)
        return Mount(self.scheduler, self.server, self._weather, seat)

    def draw(self, *what: object) -> float:
        """A draw of the world's."""
        return self._weather.draw(*what)

    def open(self, attempt: str) -> SpoolClient:
        """Its connection. Errors: OSError, SpoolError."""
        return SpoolClient(ROOT, filesystem=self.seat(attempt), clock=self._clock)


class Writer:
    """One attempt at work."""

    def __init__(self, programs: ShelfPrograms, attempt: str) -> None:
        self._programs = programs
        self._attempt = attempt
        self._task, _, number = attempt.rpartition(".")
        self._number = int(number)
        self._ended_at = math.inf
        laws = programs.server.onlooker
        assert isinstance(laws, ShelfLaws)
        self._laws = laws
        self._tries = 0

    def work(self) -> None:
        """All of it. One that may not go on ends where it is."""
        spool = self._insist(lambda: self._programs.open(self._attempt))
        if spool is None:
            return
        with spool:
            environ = {"SPOOL_ROOT": ROOT, "SPOOL_TASK_ID": self._task, "SPOOL_ATTEMPT": str(self._number)}
            with patch.dict(os.environ, environ):
                steps = Steps(spool)  # reads the environment here, and makes no call
            context = SharedContext(spool, batch_of(self._task))
            self._go(spool, steps, context)

    def _go(self, spool: SpoolClient, steps: Steps, context: SharedContext) -> None:
        at_least = self._laws.confirmed(self._task, self._number)
        found = self._insist(lambda: (steps.last(),))
        if found is None:
            return
        done = self._laws.restored(self._task, self._number, at_least, found[0])
        stop = int(self._draw("stops") * STEPS / STOP)
        for number in range(done, min(STEPS, stop)):
            self._programs.scheduler.sleep(
                LONG_S * self._draw("long", number) if self._is("pause", number, LONG) else 0.3
            )
            if self._is("by hand", number, DAMAGED):
                self._damage(spool, number)
            if self._insist(lambda number=number: self._save(steps, number)) is None:  # type: ignore[misc]
                return
            name = NAMES[int(self._draw("name", number) * len(NAMES))]
            if self._is("puts", number, 0.7) and not self._put(context, name, aware=self._is("aware", number, 0.5)):
                return

    def _save(self, steps: Steps, number: int) -> bool:
        self._tries += 1
        value = {"by": self._number, "done": [*range(number + 1)], "try": self._tries}
        self._laws.means_step(self._task, value)
        self._laws.confirm(self._task, self._number, steps.save(value), value)
        return True

    def _damage(self, spool: SpoolClient, number: int) -> None:
        """A step that a power cut tore, or that somebody edited: the highest number of all."""
        value = {"by": self._number, "done": [*range(STEPS)], "try": "damaged"}
        text = json.dumps({"sum": "0" * 32, "value": value}).encode()
        name = StepName(self._number, 1000 + number, f"hand-{self._task}-{self._number}")
        torn = self._is("torn", number, 0.5)
        with contextlib.suppress(OSError):
            path = f"{step.directory(self._task)}/{name.encode()}"
            spool.store.fs.write(path, text[:-9] if torn else text, durable=False)

    def _put(self, context: SharedContext, name: str, *, aware: bool) -> bool:
        """Add an entry, and read what counts then. False when it may not go on."""

        def put() -> bool:
            self._tries += 1
            data = f"{self._attempt}, try {self._tries}".encode()
            self._laws.means_entry(context.batch, name, data)
            seen = next((each.version for each in context.current() if each.name == name), 0) if aware else None
            try:
                entry = context.put(name, data, if_version=seen)
            except Conflict:
                return True
            self._laws.put(context.batch, entry, data)
            return True

        def get() -> bool:
            floor = self._laws.floor(context.batch, name)
            try:
                entry, data = context.get(name)
            except NotFound:
                self._laws.not_found(self._task, name, floor)
            else:
                self._laws.got(self._task, entry, data, floor)
            return True

        return self._insist(put) is not None and self._insist(get) is not None

    def _insist(self, act: Callable[[], T]) -> T | None:
        """Again and again until it went well; None when it may not go on."""
        while self._may_go_on():
            try:
                return act()
            except (OSError, SpoolError):
                self._programs.scheduler.sleep(AGAIN_S)
        return None

    def _may_go_on(self) -> bool:
        """Whether the program still runs, or outlives its attempt for a while; returns when it is not frozen."""
        programs, outlives = self._programs, self._programs.outlives(self._attempt)
        while (run := programs.run_of(self._attempt)) is not None:
            if run.frozen_at is None or outlives:
                return True
            programs.scheduler.sleep(AGAIN_S)
        self._ended_at = min(self._ended_at, programs.scheduler.now)
        return outlives and programs.scheduler.now < self._ended_at + OUTLIVE_S

    def _draw(self, *what: object) -> float:
        return self._programs.draw("writer", self._attempt, *what)

    def _is(self, what: str, number: int, odds: float) -> bool:
        return self._draw(what, number) < odds


def shelf_exit(weather: Weather, key: str) -> int:
    """How an attempt ends: many need more tries, and some ask for another one."""
    draw = weather.draw("try", key)
    return 0 if draw < 0.5 else 75 if draw < 0.7 else 1
