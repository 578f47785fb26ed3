"""One seed from beginning to end: faults for a while, then none, and then everything must come to its end."""

from __future__ import annotations

import logging
import math
from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

from spoold.protocol.doctor_report import Strategy
from spoold.rules.cluster.pool_clock import EQUAL_S
from spoold.rules.tree.audit import Severity, audit
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.store.tree_repair import survey
from tests.sim import deciders, lockers, reusers, scribes
from tests.sim.chance import settled
from tests.sim.conduct import Broken
from tests.sim.deciders import Decider
from tests.sim.laws import Laws, check_executions
from tests.sim.machine import Clocks, Machine
from tests.sim.programs import Execution
from tests.sim.reusers import Reuser
from tests.sim.scheduler import Scheduler
from tests.sim.scribes import Scribe
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import LIMITS, SETTINGS, Client, check_ends
from tests.support.injected import strictly

# What nodes say of their troubles is of thousands of them here.
logging.getLogger("spoold").addHandler(logging.NullHandler())

# How moves are made; worlds.py has another.
CLAIM: Strategy = "rename"
# The machine that has the program of every task.
ABLE = "w2"
STORM_S = 25.0
CALM_S = 150.0
# How long a blow lasts at most (s).
BLOW_S = 8.0
# What was claimed before a server forgot it may begin so much later (s).
BEGUN_S = 1.0
T = TypeVar("T")
NODES: dict[str, Literal["master", "worker"]] = {"m1": "master", "m2": "master", "w1": "worker", "w2": "worker"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a seed came to. broken: the law that did not hold, None if all did; simulated_s in virtual seconds."""

    seed: int
    flavour: str
    broken: str | None
    struck: tuple[str, ...]
    simulated_s: float
    turns: int
    moves: int
    commits: int
    fenced: int

    @property
    def law(self) -> str | None:
        """The law that did not hold, without what is said of this one breach."""
        return self.broken and self.broken.partition(":")[0]


class Universe:
    """A server, machines, a client, and the weather over them."""

    def __init__(self, seed: int, suppressed: Container[str] = frozenset()) -> None:
        self.weather = Weather(seed, suppressed)
        self.scheduler = Scheduler()
        self.clock = Clocks(self.scheduler, 0.0, 0.0, 1.0)
        self.server = Server(self.clock, rolls_back=self.weather.flavour == "local")
        self.laws = Laws(self.scheduler, self.server, LIMITS, by_lock=CLAIM == "lock")
        # Who has said that it goes to sleep is not waited for.
        self.laws.able = "" if "doze" in self.weather.blows else ABLE
        self.executions: list[Execution] = []
        initialise(self.server.fs, self.clock, "sim", "/spool", CLAIM)
        self.server.fs.write("spool.toml", SETTINGS, durable=True)
        self.server.onlooker = self.laws
        self.machines = [
            Machine(name, role, self.scheduler, self.server, self.weather, self.executions)
            for name, role in NODES.items()
        ]
        self.laws.conduct.machines |= {machine.base: machine for machine in self.machines}
        self._looked_at = (-1, False)
        self._ended = False
        self.client = Client(self.scheduler, self.server, self.weather, self.laws)
        count = round(scribes.SCRIBES * self.weather.draw("scribes"))
        self.scribes = [Scribe(self.scheduler, self.server, self.weather, self.laws, n) for n in range(count)]
        count = round(reusers.REUSERS * self.weather.draw("reusers"))
        self.reusers = [Reuser(self.scheduler, self.server, self.weather, self.laws, n) for n in range(count)]
        self.laws.check_locks = lockers.check
        self.crowds = [
            lockers.Crowd(self.scheduler, self.server, self.weather, self.laws) for _ in range(lockers.CROWDS)
        ]
        self.deciders = [
            Decider(self.scheduler, self.server, self.weather, self.laws, n) for n in range(deciders.DECIDERS)
        ]
        self.laws.one_date = "clock" not in self.weather.blows and self._disagree()
        self.client.timely = self.laws.one_date

    def _disagree(self) -> bool:
        """Whether each machine has a date of its own: two that agree outvote the server until one of them goes."""
        skews = sorted([0.0, *(machine.clocks.skew for machine in self.machines)])
        return all(later - earlier > 2 * EQUAL_S for earlier, later in pairwise(skews))

    def run(self) -> Outcome:
        """The whole of it."""
        broken = None
        try:
            with settled(self.weather.seed), strictly():
                self._play()
        except Broken as error:
            broken = f"{error}"
        except Exception as error:  # noqa: BLE001  whatever the product does wrong is a finding with a seed
            broken = f"{type(error).__name__}: {error}"
        self.scheduler.close()
        return Outcome(
            self.weather.seed,
            self.weather.flavour,
            broken,
            tuple(self.weather.struck),
            self.scheduler.now,
            self.scheduler.turns,
            self.laws.moves,
            self.laws.counts.total(),
            len(self.laws.fenced),
        )

    def _play(self) -> None:
        for machine in self.machines:
            machine.start(self.weather.draw("start", machine.base))
        self.scheduler.spawn("client", self.client.live)
        for scribe in self.scribes:
            self.scheduler.spawn(scribe.name, scribe.live, scribes.BEGIN_S * self.weather.draw("begins", scribe.name))
        for reuser in self.reusers:
            self.scheduler.spawn(reuser.name, reuser.live, reusers.BEGIN_S * self.weather.draw("begins", reuser.name))
        for crowd in self.crowds:
            self.scheduler.spawn("crowd", crowd.live)
        for decider in self.deciders:
            begin_s = deciders.BEGIN_S * self.weather.draw("begins", decider.base)
            self.scheduler.spawn(decider.base, decider.live, begin_s)
        for kind in self.weather.blows:
            self.scheduler.spawn(f"blows of {kind}", lambda kind=kind: self._blows(kind))  # type: ignore[misc]
        self.scheduler.run(STORM_S, self._over)
        self._calm()
        self.scheduler.run(STORM_S + CALM_S, self._over)
        for machine in self.machines:
            machine.look_at_programs()
        check_executions(self.executions, self.scheduler.now, self.laws.conduct.forgot_at + BEGUN_S)
        for reuser in self.reusers:
            reuser.check()
        self.laws.decided.check(self.executions)
        for decider in self.deciders:
            decider.check()
        self.laws.check_runs(self.executions)
        check_ends(self.laws, self.client.cancelled)
        self._audit()

    def _over(self) -> bool:
        """Everything was submitted and has ended."""
        # Asked before every turn, and most turns move nothing.
        if self._looked_at != (self.laws.moves, self.client.done):
            self._looked_at = (self.laws.moves, self.client.done)
            states = [self.laws.tokens.get(task, "").partition("/")[0] for task in self.laws.asked]
            self._ended = self.client.done and all(state in ("completed", "failed") for state in states)
        others: list[Reuser | Decider | lockers.Crowd] = [*self.reusers, *self.deciders, *self.crowds]
        return self._ended and all(one.done for one in others)

    def _calm(self) -> None:
        """From here on nothing goes wrong any more, and whoever is down is started again."""
        self.weather.tell("calm: from here on nothing goes wrong")
        self.weather.fair = True
        self.server.full = False
        self.laws.conduct.calmed()
        for machine in self.machines:
            machine.cut_until = machine.away_until = 0.0
            if not machine.up:
                machine.start()
        self.client.cut_until = self.client.away_until = 0.0

    def _blows(self, kind: str) -> None:
        """One kind of blow, again and again, at times that only the seed knows."""
        number = 0
        while not self.weather.fair:
            number += 1
            mean_s = self.weather.blows[kind]
            self.scheduler.sleep(-mean_s * math.log(1.0 - self.weather.draw("when", kind, number)))
            if self.weather.blows_now(kind, number):
                self._strike(kind, number)

    def _strike(self, kind: str, number: int) -> None:
        draw = self.weather.draw
        everybody: list[Machine | Client] = [*self.machines, self.client]
        machine = self._one_of(kind, number, *self.machines)
        length_s = BLOW_S * draw("length", kind, number)
        if kind == "crash":
            self._tell(kind, machine.name, length_s / 2)
            self._crash(machine, length_s)
        elif kind == "freeze":
            self._tell(kind, machine.name, length_s)
            machine.freeze(length_s)
        elif kind == "suspend":
            self._tell(kind, machine.name, length_s)
            machine.suspend(length_s)
        elif kind == "doze":
            self._tell(kind, machine.name, length_s)
            machine.doze(length_s, patience_s=4.0 * draw("patience", kind, number))
        elif kind in ("partition", "unmount"):
            whom = self._one_of(kind, number, *everybody)
            self._tell(kind, whom.name, length_s)
            if kind == "partition":
                whom.cut_until = max(whom.cut_until, self.scheduler.now + length_s)
            else:
                whom.away_until = self.scheduler.now + length_s
        elif kind == "reboot":
            self._tell(kind, "the server", length_s)
            self.laws.conduct.rebooted(length_s)
            for one in everybody:
                back_s = length_s * (1.0 + draw("back", kind, number, one.base))
                one.cut_until = max(one.cut_until, self.scheduler.now + back_s)
        elif kind == "clock":
            owners = [*(machine.clocks for machine in self.machines), self.client.clocks, self.clock]
            self._one_of(kind, number, *owners).skew += 7200.0 * (draw("jump", kind, number) - 0.5)
        elif kind == "full":
            self.server.full = True
            self.scheduler.sleep(length_s)
            self.server.full = False
        else:
            self._cut_power(number)

    def _tell(self, kind: str, whom: str, length_s: float) -> None:
        self.weather.tell(f"{kind}: {whom} for {length_s:.1f} s")

    def _one_of(self, kind: str, number: int, *all_of_them: T) -> T:
        return all_of_them[int(self.weather.draw("whom", kind, number) * len(all_of_them))]

    def _crash(self, machine: Machine, down_s: float) -> None:
        machine.crash()
        if machine.process is not None:
            machine.start(down_s / 2)

    def _cut_power(self, number: int) -> None:
        """A local disk goes dark with its machine and everybody on it; a file server alone."""
        draws = iter(range(1_000_000))
        if self.server.rolls_back:
            for machine in self.machines:
                self._crash(machine, 1.0)
            self.client.cuts += 1
        self.server.cut_power(lambda: self.weather.draw("power", number, next(draws)))

    def _audit(self) -> None:
        store = open_store(self.server.fs, self.clock, "fsck", "/spool")
        errors = [f for f in audit(survey(store)) if f.severity is Severity.ERROR]
        errors = [f for f in errors if not self.laws.excused.issuperset(f.paths)]
        if errors:
            raise Broken(f"fsck: {errors[0].problem} ({', '.join(errors[0].paths)})")


def simulate(seed: int, suppressed: Container[str] = frozenset()) -> Outcome:
    """One seed; the faults named in `suppressed` are left out."""
    return Universe(seed, suppressed).run()
