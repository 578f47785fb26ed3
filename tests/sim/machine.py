"""A machine: clocks that agree with nobody's, and one process that crashes, freezes and is started again.

The loop around `step` is the daemon's, in virtual time: patience with the environment, a new name after having been
taken for dead, and anything else is a failure of the product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spoold.daemon.signals import SLEEP_ANNOUNCED, SLEEP_OVER, Nap
from spoold.master.master import Master
from spoold.protocol.errors import ShutOut, Unavailable
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.settings import LostShare
from spoold.rules.workers.slots import DEPTH
from spoold.store.store import open_store
from spoold.system.host import FakeHost
from spoold.system.scratch import MemoryScratch
from spoold.worker.handlers.handler import Handler
from spoold.worker.handlers.worker_config import Laptop, PythonSettings, WorkerConfig
from spoold.worker.intake.claiming import Vacancies
from spoold.worker.worker import Worker
from tests.sim.conduct import Broken
from tests.sim.mount import Mount
from tests.sim.programs import MODULE, Execution, Programs
from tests.sim.scheduler import Process, Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather

TRUE_WALL = 1_760_000_000.0  # when a story begins
SHORTEST_S = 1e-6
PATIENCE_S = 1.0
ACTIVE_FOR_S = 2.0
SLOTS = 2
KINDS = ("narrow", "wide")
HANDLERS = {kind: Handler(command=("work",)) for kind in KINDS}
CONFIG = WorkerConfig(
    allow_command=True,
    laptop=Laptop(sleep_grace_s=0.5),
    freeze_s=8,
    handlers=HANDLERS,
    python=PythonSettings(allow=(MODULE,)),
)
DOZE_LOOK_S = 0.2
# The machines whose workers have the label `rare`.
RARE: frozenset[str] = frozenset()
# As which other types their tasks may run.
INSTEAD: dict[str, tuple[str, ...]] = {}


@dataclass(slots=True)
class Clocks:
    """A machine's clocks over true time (s). ahead: where monotonic and boottime began; skew: error of the date."""

    scheduler: Scheduler
    ahead: float
    skew: float
    rate: float
    slept: float = 0.0

    def monotonic(self) -> float:
        return self.ahead + self.scheduler.now * self.rate - self.slept

    def boottime(self) -> float:
        return self.ahead + self.scheduler.now * self.rate

    def wall(self) -> float:
        return TRUE_WALL + self.scheduler.now + self.skew

    def used(self) -> float:
        return 0.0  # no machine of this world is slow by itself


class Brisk(Vacancies):
    """As after many short tasks, however long the last ones were."""

    def free(self, held: int) -> int:
        if not self.lending.claims:
            return 0
        return self._slots + DEPTH * max(self._slots - self._engaged, 0) - held + self.lending.lent


class Machine:
    """A machine with one node on it. Until then (true time, s) its cable is pulled (cut_until), or its share is not
    mounted (away_until); seen_at: when its node had first seen the share.
    """

    def __init__(
        self,
        base: str,
        role: Literal["master", "worker"],
        scheduler: Scheduler,
        server: Server,
        weather: Weather,
        executions: list[Execution],
    ) -> None:
        self.base = base
        self.name = base
        self.role = role
        self.cut_until = self.away_until = 0.0
        self.process: Process | None = None
        self.programs: Programs | None = None
        self.actor: Master | Worker | None = None
        self.shut_out = 0
        self._outlived: tuple[str, ...] = ()
        self.step_began = 0.0
        self.seen_at = math.inf
        self.dozed = 0
        self._scheduler = scheduler
        self._server = server
        self._weather = weather
        self._executions = executions
        self._starts = 0
        self._left: set[str] = set()  # the nodes of which traces are here, as an image of the machine has them
        self._host = FakeHost(base)
        self.clocks = Clocks(
            scheduler,
            ahead=1000.0 * weather.draw("ahead", base),
            skew=20_000.0 * (weather.draw("skew", base) - 0.5),
            rate=1.0 + 0.02 * (weather.draw("rate", base) - 0.5),
        )
        self._nap = Nap(self.clocks)

    @property
    def up(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and not self.process.dead

    @property
    def slept(self) -> float:
        """How long (s) its monotonic clock has stood still."""
        return self.clocks.slept

    def start(self, after_s: float = 0.0) -> None:
        """Start its process, under a name that was never there."""
        self._host = self._host.another()
        self._nap = Nap(self.clocks)
        self.seen_at = math.inf
        self.process = self._scheduler.spawn(self.base, self._live, after_s)

    def crash(self) -> None:
        """kill -9: the process and all that it ran are gone."""
        if self.process is not None:
            self._scheduler.kill(self.process)
            self._host.die()
        self._kill_programs()

    def fall(self) -> None:
        """As `crash`, and started again after a while."""
        self.crash()
        self.start(1.0 + 3.0 * self._weather.draw("down", self.name))

    def freeze(self, seconds: float) -> None:
        """SIGSTOP for a while; what it runs goes on, under the eyes of its supervisors."""
        if self.process is not None:
            self.process.frozen_until = self._scheduler.now + seconds

    def suspend(self, seconds: float) -> None:
        """A closed lid: nothing on it moves, and the monotonic clock stands still."""
        self.freeze(seconds)
        self.clocks.slept += seconds * self.clocks.rate

    def doze(self, seconds: float, patience_s: float) -> None:
        """A closed lid that says so, and waits for a while until nothing runs. Takes its time."""
        self._nap.hear(SLEEP_ANNOUNCED)
        until = self._scheduler.now + patience_s
        while self._nap.due and self.up and self._scheduler.now < until and not self._rests():
            self._scheduler.sleep(DOZE_LOOK_S)
        self.dozed += self._rests()
        self.suspend(seconds)
        self._scheduler.sleep(seconds)
        self._nap.hear(SLEEP_OVER)

    def _rests(self) -> bool:
        return self.actor is None or (isinstance(self.actor, Worker) and self.actor.asleep)

    def moves(self, key: str) -> bool:
        """Whether this job runs here, and is not frozen."""
        return self.programs is not None and self.programs.moves(key)

    def look_at_programs(self) -> None:
        """What has ended by now is on record."""
        if self.programs is not None:
            self.programs.lapse()

    def _kill_programs(self) -> None:
        if self.programs is not None:
            self.programs.lapse()
            self.programs.close(0.0)

    def _live(self) -> None:
        while True:
            self._starts += 1
            self.name = f"{self.base}-{self._starts}"
            self._left.add(self.name)
            try:
                while self._nap.due and self.role == "master":
                    self._scheduler.sleep(DOZE_LOOK_S)
                if not self._be(self._make()):
                    return
            except ShutOut:
                self.shut_out += 1
                if isinstance(self.actor, Worker):
                    self._outlived = self.actor.outlived
                self._kill_programs()
                self._check_shut_out()
            except (OSError, Unavailable):
                self._scheduler.sleep(PATIENCE_S)

    def _check_shut_out(self) -> None:
        """Who says that it was shut out has truly lost a directory: else its claims would wait for a silence."""
        rooms = ("tmp", "claimed") if self.role == "worker" else ("tmp",)
        if all(self.name in self._server.fs.list(room) for room in rooms):
            raise Broken(f"shut out: {self.name} gives its name up, and nobody has taken it")

    def _make(self) -> Master | Worker:
        mount = Mount(self._scheduler, self._server, self._weather, self)
        store = open_store(mount, self.clocks, self.name, "/spool", mount)
        if self.role == "master":
            store.open_tmp()
            return Master(store, self._host)
        scratch = MemoryScratch()
        programs = self.programs = Programs(
            self.clocks, lambda: self._scheduler.now, self._weather, self.name, self._executions, SLOTS
        )
        programs.attach(self._scheduler, self._server)
        programs.scratch = scratch
        python, labels = CONFIG.python.allow, ("rare",) if self.base in RARE else ()
        can = Capabilities(
            cpus=8, mem_mb=8192, allow_command=True, handlers=KINDS, python=python, labels=labels, instead=INSTEAD
        )
        policy: LostShare = "freeze" if self._weather.draw("lost_share", self.base) < 0.8 else "stop"
        config = CONFIG.model_copy(update={"lost_share": policy})
        worker = Worker(
            store,
            self._host,
            programs,
            scratch,
            config,
            can,
            SLOTS,
            root="/spool",
            environ={},
            loans=programs.loans,
            outlived=self._outlived,
        )
        if programs.brisk:
            worker.vacancies = Brisk(programs, SLOTS, worker.vacancies.lending)
        worker.register(self._left - {self.name})
        return worker

    def _be(self, actor: Master | Worker) -> bool:
        """Until it has left, or has gone to sleep; the latter is to be made anew."""
        self.actor = actor
        self.seen_at = math.inf
        active_at = self._scheduler.now
        while True:
            self.step_began = self._scheduler.now
            if self._rest(actor):
                return True
            try:
                step = actor.step()
            except OSError:
                self._scheduler.sleep(PATIENCE_S)
                continue
            self.seen_at = min(self.seen_at, self._scheduler.now)
            if getattr(step, "done", False):
                actor.close()
                return False
            if step.busy:
                active_at = self._scheduler.now
            longest = 0.05 if self._scheduler.now - active_at < ACTIVE_FOR_S else 0.5
            due = longest if step.next_due is None else (step.next_due - self.clocks.monotonic()) / self.clocks.rate
            # A step that makes no call takes no time, and a rest too short for a float to show would be none.
            self._scheduler.sleep(max(SHORTEST_S, min(due, longest)))

    def _rest(self, actor: Master | Worker) -> bool:
        """What the daemon does about a sleep that was announced; True when nothing is left of this node."""
        if isinstance(actor, Worker):
            if self._nap.due:
                actor.fall_asleep()
            else:
                actor.wake_up()
            return False
        if self._nap.due:
            actor.close()
            self.actor = None
        return self._nap.due
