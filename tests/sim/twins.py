"""Machines of one identity: cloned from one disk image, or resumed from one image of their memory.

A clone has the machine id and the host name of the others, and a boot of its own. A resumed machine is a copy of all
that was in the memory of another, at a moment between two steps: the same node under the same name, the same counters
and beats, the same running tasks. Both go on from there, and neither knows of the other.

Law: a resumed node may run what its twin runs until both have beaten again, since nothing can tell it before. From
then on all laws hold, and of what both did in the meantime one commit counts.
"""

from __future__ import annotations

import copyreg
import itertools
from copy import deepcopy
from dataclasses import replace
from typing import Any

from spoold.master.master import Master
from spoold.protocol.names import key, parse_ended
from spoold.system.host import FakeHost
from spoold.worker.worker import Worker
from tests.sim.laws import Laws, check_executions, token_at
from tests.sim.machine import Machine
from tests.sim.mount import Mount
from tests.sim.programs import Execution, Running
from tests.sim.universe import Universe

# The mean time (s) between two machines that are resumed, and how many are at most: each makes the pool larger.
RESUMED_S, MOST = 6.0, 3
# How long (s) after its last beat both of a pair are seen to beat: an interval of a second, and a stalled call.
UNAWARE_S = 4.0
RESUMED = "resumed"

# A count knows where it is, and new releases of Python do not copy it any more.
copyreg.pickle(itertools.count, lambda one: (itertools.count, (int(repr(one).partition("(")[2].rstrip(")")),)))


class CloneHost(FakeHost):
    """A machine that was cloned from the same disk as all others."""

    def __init__(self, hostname: str = "host", **made: Any) -> None:
        super().__init__(hostname, **made)
        if not made:
            machine = self.machine
            machine.identity = replace(machine.identity, hostname="laptop", machine_id="machine-laptop")


class ImagedHost(CloneHost):
    """A machine that was resumed from the same image of memory as all others, before any node ran on it."""

    def __init__(self, hostname: str = "host", **made: Any) -> None:
        super().__init__(hostname, **made)
        if not made:
            self.machine.identity = replace(self.machine.identity, boot_id="boot-laptop-1")


class Shared(Mount):
    """A mount of a share: whoever is on a local disk is on one machine."""

    remote = True


class Resumable(Machine):
    """A machine of whose memory an image may be taken, from which another one is resumed."""

    universe: ResumedUniverse | None = None
    copied: Master | Worker | None = None
    imaged = False

    def _rest(self, actor: Master | Worker) -> bool:
        if self.imaged and self.universe is not None:
            self.imaged = False
            # A leader and its twin are one leader until the token is renewed: test_leadership says what then holds.
            if self.name != self.universe.laws.conduct.holder:
                self.universe.resume(self)
        return super()._rest(actor)

    def _make(self) -> Master | Worker:
        if self.copied is None:
            return super()._make()
        actor, self.copied = self.copied, None
        self.name = actor.store.writer
        return actor

    def _check_shut_out(self) -> None:
        if self.actor is None or not self.actor.store.shared:
            super()._check_shut_out()

    def resumed(self, base: str) -> Resumable:
        """Another machine with all that is in this one's memory."""
        shared = self._scheduler, self._server, self._weather, self._executions, self.universe
        memo: dict[int, Any] = {id(one): one for one in shared}
        memo[id(self.process)] = None
        twin = deepcopy(self, memo)
        twin.base, twin.copied = base, twin.actor
        return twin

    def running(self) -> list[Running]:
        """The jobs that run in its slots."""
        return list(self.programs._live.values()) if self.programs is not None else []


class ResumedUniverse(Universe):
    """Machines are resumed from images of others, now and then."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.weather.blows[RESUMED] = RESUMED_S
        self.resumes = 0
        for machine in self.machines:
            assert isinstance(machine, Resumable)
            machine.universe = self

    def _strike(self, kind: str, number: int) -> None:
        if kind != RESUMED:
            super()._strike(kind, number)
            return
        machine = self._one_of(kind, number, *self.machines)
        if isinstance(machine, Resumable) and self.resumes < MOST and machine.up:
            machine.imaged = True

    def resume(self, machine: Resumable) -> None:
        """Start another machine from an image of this one, taken now."""
        self.resumes += 1
        twin = machine.resumed(f"{machine.base}r{self.resumes}")
        self.weather.tell(f"resumed: {machine.name} runs twice")
        assert isinstance(self.laws, ResumedLaws)
        self.laws.doubled[machine.name] = self.scheduler.now
        for running in twin.running():
            running.execution = replace(running.execution, begin=self.scheduler.now)
            self.executions.append(running.execution)
        self.machines.append(twin)
        self.laws.conduct.machines[twin.base] = twin
        twin.process = self.scheduler.spawn(twin.base, twin._live)


class ResumedLaws(Laws):
    """The laws, where a node may run twice. doubled: since when (s)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.doubled: dict[str, float] = {}

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        beats = replaced and src.startswith("tmp/") and src.split("/")[1] in self.doubled and token_at(dst) is None
        super().renamed(src, dst, replaced and not beats)

    def _counted_on(self, path: str) -> bool:
        ended = parse_ended(path.rpartition("/")[2])
        return super()._counted_on(path) and not (ended is not None and self.unaware(ended.decider))

    def unaware(self, node: str) -> bool:
        """Whether a node may run twice and cannot know it."""
        return self.scheduler.now < self.doubled.get(node, -UNAWARE_S) + UNAWARE_S


def check_once(executions: list[Execution], now: float, since: float = 0.0) -> None:
    """As `check_executions`, for all that a node ran which never ran twice."""
    doubled = {(key(run.task), run.attempt, run.worker) for run in executions if _again(run, executions)}
    check_executions(
        [run for run in executions if (key(run.task), run.attempt, run.worker) not in doubled], now, since
    )


def _again(run: Execution, executions: list[Execution]) -> bool:
    return any(
        other is not run and (other.task, other.attempt, other.worker) == (run.task, run.attempt, run.worker)
        for other in executions
    )
