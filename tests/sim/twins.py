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
import threading
from copy import _deepcopy_dispatch, deepcopy  # type: ignore[attr-defined]
from dataclasses import replace
from types import CellType, FunctionType
from typing import Any

from spoold.master.master import Master
from spoold.protocol.names import EndedName, TaskName, key, parse_beat, parse_ended, parse_task
from spoold.protocol.request import Verb, parse_request
from spoold.system.host import FakeHost
from spoold.worker.worker import Worker
from tests.sim.conduct import Conduct, Node
from tests.sim.laws import Laws, check_executions, token_at
from tests.sim.machine import Machine
from tests.sim.mount import Mount
from tests.sim.programs import Execution, Running
from tests.sim.universe import BEGUN_S, Universe

# The mean time (s) between two machines that are resumed, and how many are at most: each makes the pool larger.
RESUMED_S, MOST = 6.0, 3
# An interval of a second, and clocks that run one per cent fast (s).
CONFIRMED_S = 0.9
RESUMED = "resumed"

# A count knows where it is, and new releases of Python do not copy it any more. Between two steps no lock is held.
copyreg.pickle(itertools.count, lambda one: (itertools.count, (int(repr(one).partition("(")[2].rstrip(")")),)))
copyreg.pickle(type(threading.Lock()), lambda one: (threading.Lock, ()))


def _image(one: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """A function holds what it was made with. `deepcopy` would leave that with the machine of which it was."""
    if not one.__closure__:
        return one
    cells = tuple(CellType() for _ in one.__closure__)
    made = FunctionType(one.__code__, one.__globals__, one.__name__, one.__defaults__, cells)
    memo[id(one)] = made
    made.__kwdefaults__ = one.__kwdefaults__
    for cell, whole in zip(cells, one.__closure__, strict=True):
        cell.cell_contents = deepcopy(whole.cell_contents, memo)
    return made


_deepcopy_dispatch[FunctionType] = _image


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
        try:
            twin = machine.resumed(f"{machine.base}r{self.resumes + 1}")
        except TypeError:  # Python copies no generator: that of a long work goes on, and an image of it is not taken
            return
        self.resumes += 1
        self.weather.tell(f"resumed: {machine.name} runs twice")
        for running in twin.running():
            running.execution = replace(running.execution, begin=self.scheduler.now)
            self.executions.append(running.execution)
        self.machines.append(twin)
        self.laws.conduct.machines[twin.base] = twin
        assert isinstance(self.laws, ResumedLaws)
        self.laws.resumed(machine.name, [running.execution for running in twin.running()])
        twin.process = self.scheduler.spawn(twin.base, twin._live)


class ResumedConduct(Conduct):
    """Who may do what, where the processes of two machines have one identity.

    A restarted node does not find its predecessor's process on its own machine, says so, and is right or wrong: the
    image bears no sign by which it could know. Such a report shortens the silence, and replaces none of it.
    """

    def reported(self, node: str) -> bool:
        """Whether a node of the same identity has said that this one's process is gone."""
        requests = map(parse_request, self.server.fs.list("control"))
        return any(request.verb is Verb.REAP and request.target == node for request in requests if request)

    def _know(self, source: str, target: str, file: str) -> None:
        """What one of two masters of one name makes ready, the other learns of at its next listing."""
        super()._know(source, target, file)
        task = parse_task(file)
        if target == "ready" and task is not None and [m.name for m in self.machines.values()].count(self.holder) > 1:
            self.strangers.add(key(task.id))

    def silence_s(self, owner: str) -> float:
        return CONFIRMED_S if self.reported(owner) else super().silence_s(owner)

    def _must_be_patient(self, observer: Node, owner: str, dst: str) -> None:
        if not self.reported(owner):
            super()._must_be_patient(observer, owner, dst)


class ResumedLaws(Laws):
    """The laws, where a node may run twice.

    loose: the attempts that ran, or may have, on two machines that did not know of each other, and those of a node
    that another machine of its identity took for dead.
    """

    def __post_init__(self) -> None:
        self.conduct = ResumedConduct(self.scheduler, self.server, self.by_lock)
        self.loose: set[tuple[str, int]] = set()

    def resumed(self, node: str, running: list[Execution]) -> None:
        """From now on, and until one gives the name up, two machines are this node, and run this."""
        self.journals.twice[node] += 1
        for path in [path for path in self.tokens.values() if path.startswith(f"claimed/{node}/")]:
            self._let_loose(path)
        self.loose |= {(key(run.task), run.attempt) for run in running}

    def twice(self, node: str) -> bool:
        """Whether two machines that run are this node, so that neither knows it for certain."""
        return sum(machine.up and machine.name == node for machine in self.conduct.machines.values()) > 1

    def written(self, path: str, replaced: bool) -> None:
        """Of what two machines run at once the result of either counts; that one is there stays a law."""
        ended = parse_ended(path.rpartition("/")[2]) if path.startswith("results/") else None
        either = (
            ended is not None and self.journals.twice[ended.decider] and (key(ended.id), ended.attempt) in self.loose
        )
        self.conduct.written(path, replaced, not either and self._counted_on(path))

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        super().renamed(src, dst, replaced and not self._same(src, dst))

    def _same(self, src: str, dst: str) -> bool:
        """Whether two machines that are one node, or were, give a beat or a request one name; no task ever."""
        beat = parse_beat(dst.partition("/")[2]) if dst.startswith("heartbeats/") else None
        writer = beat.node if beat is not None else src.split("/")[1] if src.startswith("tmp/") else ""
        return self.journals.twice[writer] > 0 and token_at(dst) is None

    def check_runs(self, executions: list[Execution]) -> None:
        surely = [run for run in executions if (key(run.task), run.attempt) not in self.loose]
        check_executions(surely, self.scheduler.now, self.conduct.forgot_at + BEGUN_S)

    def _claimed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        super()._claimed(name, src, dst)
        if self.twice(dst.split("/")[1]):
            self._let_loose(dst)

    def _check_still(self, before: TaskName, src: str, dst: str) -> None:
        assert isinstance(self.conduct, ResumedConduct)
        if self.conduct.reported(src.split("/")[1]):
            self._let_loose(src)
        else:
            super()._check_still(before, src, dst)

    def _let_loose(self, path: str) -> None:
        name = token_at(path)
        assert name is not None
        self.loose.add((key(name.id), name.attempt))
