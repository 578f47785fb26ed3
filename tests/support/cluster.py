"""A whole cluster in one thread: masters and workers over one file system in memory, stepped by hand.

Law: the very `step` functions that the daemons loop on, and nothing in their place. Every node has a mount, a clock
and a host of its own, and no two monotonic clocks agree, as on real machines. After every step a witness looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from spoold.master.limits.result_stream import Subscriber
from spoold.master.master import Master
from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Capabilities
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost, FakeMachine
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.scratch import MemoryScratch
from spoold.system.slot_loans import NO_LOANS, Loans
from spoold.worker.handlers.worker_config import WorkerConfig
from spoold.worker.worker import Worker
from tests.support.faults import Crashed, FaultyFileSystem
from tests.support.runner import FakeRunner
from tests.support.tokens import Token, Witness, find

TICK_S = 1.0
ROUNDS_MAX = 100
# What changes all by itself while nothing happens.
_RESTLESS = ("heartbeats/", "master/", "status/", "events/", "tmp/", "logs/")

_OF_TASKS = ("waiting/", "ready/", "claimed/", "returned/", "completed/", "failed/")


class Tree(MemoryFileSystem):
    """The files of the spool. A task is never renamed onto a file that is there: that would be the other's end."""

    def rename(self, src: str, dst: str) -> None:
        if dst.startswith(_OF_TASKS) and src != dst and self._is_file(src) and self._is_file(dst):
            pytest.fail(f"{src} was renamed onto {dst}, which was there")
        super().rename(src, dst)

    def _is_file(self, path: str) -> bool:
        try:
            return self.stat(path).kind == "file"
        except OSError:
            return False


@dataclass(slots=True)
class Node:
    """One process on one machine. frozen: it is not stepped, though its clock goes on."""

    name: str
    fs: FaultyFileSystem
    clock: ManualClock
    host: FakeHost
    actor: Master | Worker = field(init=False)
    runner: FakeRunner | None = None
    scratch: MemoryScratch | None = None
    frozen: bool = False

    @property
    def worker(self) -> Worker:
        """The worker in it."""
        assert isinstance(self.actor, Worker)
        return self.actor

    @property
    def master(self) -> Master:
        """The master in it."""
        assert isinstance(self.actor, Master)
        return self.actor


@dataclass(slots=True)
class Cluster:
    """Makes nodes, steps them, and breaks them. Times in seconds.

    remote: a server holds the files, so that every look costs a round trip. gone: nodes that left, crashed or
    were shut out, and why. troubles: what the last steps could not do. traces: on whose disk a node has left some.
    """

    settings: str = ""
    remote: bool = False
    clock: ManualClock = field(default_factory=ManualClock)
    fs: MemoryFileSystem = field(init=False)
    witness: Witness = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    hosts: dict[str, FakeHost] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    traces: dict[str, FakeMachine] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fs = Tree(self.clock)
        self.fs.remote = self.remote
        self.witness = Witness(self.fs)
        initialise(self.fs, self.clock, "spool", "/spool")
        if self.settings:
            self.configure(self.settings)

    def configure(self, settings: str) -> None:
        """Write spool.toml; nodes that start later read it."""
        self.fs.write("spool.toml", settings.encode(), durable=True)

    def master(self, name: str, *, host: str = "", subscribers: Sequence[Subscriber] = ()) -> Node:
        """Start a master."""
        node = self._node(name, host or name)
        store = open_store(node.fs, node.clock, name, "/spool")
        store.open_tmp()
        node.actor = Master(store, node.host, subscribers)
        return self._add(node)

    def worker(
        self,
        name: str,
        slots: int = 1,
        *,
        host: str = "",
        config: Mapping[str, Any] | None = None,
        loans: Loans = NO_LOANS,
        outlived: tuple[str, ...] = (),
        **can: Any,
    ) -> Node:
        """Start a worker, registered. config: its configuration, in which raw commands are allowed by default."""
        node = self._node(name, host or name)
        settings = WorkerConfig.model_validate({"allow_command": True, **(config or {})})
        node.scratch = MemoryScratch()
        node.runner = FakeRunner(node.clock, node.scratch, slots)
        abilities = {"cpus": 8, "mem_mb": 8192, "allow_command": settings.allow_command, "labels": settings.labels}
        abilities |= {"types": settings.types, "pools": settings.pools, "python": settings.python.allow}
        abilities |= {"handlers": tuple(settings.handlers), **can}
        store = open_store(node.fs, node.clock, name, "/spool")
        capabilities = Capabilities.model_validate(abilities)
        node.actor = worker = Worker(
            store,
            node.host,
            node.runner,
            node.scratch,
            settings,
            capabilities,
            slots,
            root="/spool",
            environ={},
            loans=loans,
            outlived=outlived,
        )
        self._add(node)
        worker.register({one for one, machine in self.traces.items() if machine is node.host.machine} - {name})
        return node

    def _node(self, name: str, host: str) -> Node:
        here = self.hosts[host].another() if host in self.hosts else FakeHost(host)
        self.hosts.setdefault(host, here)
        clock = ManualClock(
            monotonic=1000.0 + 7919.0 * len(self.hosts), boottime=self.clock.boottime(), wall=self.clock.wall()
        )
        mount = FaultyFileSystem(self.fs)
        self.traces[name] = here.machine
        return Node(name, mount, clock, here)

    def _add(self, node: Node) -> Node:
        assert node.name not in self.nodes, f"{node.name} is there already; every start has a name of its own"
        assert node.name not in self.gone, f"{node.name} was there already; every start has a name of its own"
        self.nodes[node.name] = node
        return node

    def submit(self, drop: str, content: str | bytes) -> None:
        """Put a file into pending/, as any tool would."""
        data = content.encode() if isinstance(content, str) else content
        self.fs.write(f"pending/{drop}", data, durable=False)

    def find(self, task_id: str) -> Token:
        """The one token of a task."""
        return find(self.fs, task_id)

    def state(self, task_id: str) -> str:
        """The state of a task."""
        return self.find(task_id).state

    def step(self, name: str) -> bool:
        """One step of one node; False when it could not be made. What it could not do is in `troubles`."""
        node = self.nodes[name]
        try:
            done = getattr(node.actor.step(), "done", False)
        except OSError as error:
            self._trouble(f"{name}: {error.strerror or error}")
            return False
        except ShutOut as error:
            self._leave(name, f"shut out: {error}")
            return False
        except Crashed:
            self._leave(name, "crashed")
            return False
        finally:
            self.witness.look(name)
        if done:
            self.stop(name)
        return True

    def step_all(self) -> None:
        """One step of every node that is not frozen."""
        for name in list(self.nodes):
            if name in self.nodes and not self.nodes[name].frozen:
                self.step(name)

    def settle(self) -> None:
        """Step all until nothing changes any more. Errors: AssertionError when it never comes to rest."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            before = self._picture()
            self.step_all()
            # Two, because a job that was stopped in one step is only heard of in the next.
            quiet = quiet + 1 if self._picture() == before else 0
            if quiet == 2:
                return
        raise AssertionError(f"no rest after {ROUNDS_MAX} rounds: {sorted(self._picture())}")

    def advance(self, seconds: float, but: str = "") -> None:
        """Let time pass, in which all nodes work, a step a second; `but` is a node whose clock is left alone."""
        while seconds > 1e-9:
            tick = min(TICK_S, seconds)
            self.pass_time(tick, but)
            self.step_all()
            seconds -= tick

    def pass_time(self, seconds: float, but: str = "") -> None:
        """Move the clocks, and nothing else."""
        self.clock.advance(seconds)
        for node in self.nodes.values():
            if node.name != but:
                node.clock.advance(seconds)

    def sleep(self, name: str, seconds: float) -> None:
        """Close the lid of one machine while the others work on."""
        node = self.nodes[name]
        node.frozen = True
        self.advance(seconds, but=name)
        node.clock.suspend(seconds)
        node.frozen = False

    def crash(self, name: str) -> None:
        """The process is gone, and has cleaned up nothing."""
        self._leave(name, "crashed")

    def stop(self, name: str) -> None:
        """The process leaves as it should: a worker that still runs tasks drains at once."""
        node = self.nodes[name]
        try:
            if isinstance(node.actor, Worker) and node.actor.running:
                node.actor.drain(0.0)
                for _ in range(ROUNDS_MAX):
                    if not node.actor.running:
                        break
                    node.actor.step()
            node.actor.close()
            self._leave(name, "left")
        except Crashed:
            self._leave(name, "crashed")
        self.witness.look(name)

    def finish(self, task_id: str, *, on: str = "", **ending: Any) -> None:
        """The command of a task ends, on the one node that runs it."""
        for node in self.nodes.values():
            for key in list(node.runner.live) if node.runner else []:
                ran = key.rpartition(".")[0]
                if on in ("", node.name) and (ran == task_id or ran.startswith(f"{task_id}-")):
                    assert node.runner is not None
                    node.runner.finish(key, **ending)
                    return
        raise AssertionError(f"{task_id} runs nowhere{f' on {on}' if on else ''}: {self.running()}")

    def running(self) -> dict[str, list[str]]:
        """Which attempts run on which worker."""
        return {n.name: sorted(n.runner.running()) for n in self.nodes.values() if n.runner is not None}

    def during(self, name: str, verb: str, path: str, meanwhile: Callable[[], object]) -> None:
        """Stop one node in the middle of its next such call, for as long as `meanwhile` takes."""
        node = self.nodes[name]

        def others() -> None:
            node.frozen = True
            meanwhile()
            node.frozen = False

        node.fs.hang(verb, path, others)

    def _picture(self) -> dict[str, bytes]:
        return {path: data for path, data in self.fs.files().items() if not path.startswith(_RESTLESS)}

    def _leave(self, name: str, why: str) -> None:
        node = self.nodes.pop(name)
        node.host.die()
        self.gone[name] = why
        if why != "left":
            self._trouble(f"{name}: {why}")

    def _trouble(self, text: str) -> None:
        if text not in self.troubles:
            self.troubles.append(text)
