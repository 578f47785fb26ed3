"""Tasks that submit others while they run, and wait for them with their slot lent.

A parent submits two children from its machine, each until it is acknowledged. Then it lends its slot, waits until
both have ended, asks for its slot, and works for a while. What works at once on a machine is never more
than its slots: that is looked at whenever a program begins or goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from spoold.runner.job import Job, Kind
from spoold.system.slot_loans import Loan
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.programs import Execution, Programs
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.workload import Client

# The share of the tasks that are submitted one by one which are parents; each has so many children.
PARENTS, CHILDREN = 0.5, 2
LOOK_S, WORKS_S = 0.2, 0.5
CHILD = {"type": "wide", "command": ["work"], "dependencies": [], "max_retries": 2, "depth": 1}


@dataclass(slots=True)
class SimLoans:
    """The loans of one machine's programs: the worker's end. asks: by attempt, whether it wants to go on."""

    programs: Families
    directory: str = "/loans"
    asks: dict[str, bool] = field(default_factory=dict)

    def look(self) -> list[Loan]:
        self.asks = {attempt: back for attempt, back in self.asks.items() if self.programs.runs(attempt)}
        return [Loan(attempt, f"{attempt}.{'back' if back else 'lend'}", back) for attempt, back in self.asks.items()]

    def settle(self, loan: Loan) -> None:
        if self.asks.pop(loan.attempt, None):
            self.programs.go_on(loan.attempt)


class Families(Programs):
    """The runner of one worker, among whose tasks are parents."""

    def attach(self, scheduler: Scheduler, server: Server) -> None:
        self.scheduler, self.server = scheduler, server
        self.loans = self.waits = SimLoans(self)
        self.lent: set[str] = set()
        self.count = len(self._slots)

    def runs(self, attempt: str) -> bool:
        """Whether this attempt is under way here."""
        return attempt in self._live

    def start(self, job: Job) -> None:
        able = [slot for slot in self._slots if not self._aside(slot)]
        if len(able) < self.count:
            self._slots.append([])
        for slot in [slot for slot in able if not slot][: max(0, len(able) - self.count)]:
            self._slots.remove(slot)  # it was there while a slot was lent
        super().start(job)

    def _begin(self, job: Job, moment: float) -> Execution:
        execution = super()._begin(job, moment)
        task = job.key.rpartition(".")[0]
        if self.is_parent(task) and not self._missed(task):
            self._live[job.key].done = math.inf
            self.scheduler.spawn(f"family of {job.key}", lambda: self._raise(job.key))
        self.check()
        return execution

    def is_parent(self, task: str) -> bool:
        """Whether a task submits others."""
        return task.startswith("t") and "-" not in task and self._weather.draw("parent", task) < PARENTS

    def _raise(self, attempt: str) -> None:
        """The parent's own doing."""
        task = attempt.rpartition(".")[0]
        laws = self.server.onlooker
        assert isinstance(laws, Laws)
        person = Client(self.scheduler, self.server, self._weather, laws, f"family-{attempt}".replace(".", "-"))
        children = [f"{task}-c{number}" for number in range(CHILDREN)]
        for child in children:
            if self.runs(attempt):
                # Of the type without a limit: a task that waits still counts for its own.
                person._submit([{**CHILD, "id": child, "parent": task}])
        if self.runs(attempt):
            self.waits.asks[attempt] = False
        while self.runs(attempt) and not all(map(person._ended, children)):
            self.scheduler.sleep(LOOK_S)
        if self.runs(attempt):
            self.waits.asks[attempt] = True

    def go_on(self, attempt: str) -> None:
        """Its worker has let it."""
        self.lapse()
        if attempt in self._live:
            self._live[attempt].done = self._clock.boottime() + WORKS_S
        self.check()

    def check(self) -> None:
        """No more programs work than there are slots."""
        working = [attempt for attempt in self._live if attempt not in self.waits.asks]
        if len(working) > self.count:
            raise Broken(f"slots: {sorted(working)} work on {self._worker}, which has {self.count} slots")

    def lend(self, keys: Collection[str]) -> None:
        for slot in self._slots:
            if slot and slot[0].key in keys and slot[0].key not in self.lent:
                self._withdraw(slot, self.waiting())
        self.lent = set(keys)

    def engaged(self, since_s: float) -> int:
        return super().engaged(since_s) - sum(self._age(slot) >= since_s for slot in self._slots if self._aside(slot))

    def _aside(self, slot: list[Job]) -> bool:
        return bool(slot) and slot[0].key in self.lent

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        self.lent.discard(slot[0].key)
        super()._end(slot, kind, code, moment)
