"""graphs: what a task of a large DAG costs: admission, a leader's restart, release, claim, completion.

Method: one real leader and one real worker that runs nothing, stepped in turn in this process over real files, so
that each one's time is its own and nobody waits. The worker's step is split where it first touches ready/: what comes
before commits, what comes after claims. Touches: a spool of its own, in memory where there is such a place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spoold import Spool
from spoold.master.master import Master
from spoold.protocol.heartbeat import Capabilities
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem
from spoold.system.scratch import MemoryScratch
from spoold.worker.handlers.worker_config import WorkerConfig
from spoold.worker.worker import Worker
from tools.benchmark import tree
from tools.benchmark.bench import Bench, tell
from tools.benchmark.figure import Figure, depth
from tools.benchmark.machine import Place
from tools.benchmark.runner import InstantRunner

SLOTS = 64
MESH_WIDTH = 100
GIVE_UP_S = 3600.0
STATIONS = ("admission", "restart", "release", "claim", "completion")


def chain(count: int) -> Iterator[list[str]]:
    """Each after the one before."""
    for number in range(count):
        yield [f"n{number - 1}"] if number else []


def wide(count: int) -> Iterator[list[str]]:
    """One, then all the others at once, then one after all of them."""
    yield []
    yield from (["n0"] for _ in range(count - 2))
    yield [f"n{number}" for number in range(1, count - 1)]


def mesh(count: int) -> Iterator[list[str]]:
    """Layers, in which each needs two neighbours of the layer before: diamonds upon diamonds."""
    width = min(MESH_WIDTH, max(2, count // 10))
    for number in range(count):
        layer, at = divmod(number, width)
        before = (layer - 1) * width
        yield [f"n{before + at}", f"n{before + (at + 1) % width}"] if layer else []


SHAPES: dict[str, Callable[[int], Iterator[list[str]]]] = {"chain": chain, "wide": wide, "diamond mesh": mesh}


def graphs(bench: Bench) -> list[Figure]:
    """All three shapes, at a tenth of the size and at the whole of it."""
    figures = []
    for shape, parents in SHAPES.items():
        for count in (bench.scale.graph // 10, bench.scale.graph):
            began = time.monotonic()
            costs = _walked(bench.places[-1], list(parents(count)))
            tell(f"graphs: {shape} of {count} in {time.monotonic() - began:.1f} s")
            for station in STATIONS:
                name = f"{shape} of {depth(count)}, {bench.places[-1].kind}: {station}"
                figures.append(Figure("graphs", name, "µs for each task", (costs[station] / count * 1e6,)))
    return figures


class Watched(PosixFileSystem):
    """Remembers when a worker first touched ready/ in its present step."""

    claiming_at: float | None = None

    def list(self, path: str) -> list[str]:
        self._note(path)
        return super().list(path)

    def rename(self, src: str, dst: str) -> None:
        self._note(src)
        super().rename(src, dst)

    def parted(self, ended: float) -> float:
        """When it began to claim; when it ended, if it did not."""
        return ended if self.claiming_at is None else self.claiming_at

    def _note(self, path: str) -> None:
        if self.claiming_at is None and path.partition("/")[0] == "ready":
            self.claiming_at = time.perf_counter()


def _walked(place: Place, parents: list[list[str]]) -> dict[str, float]:
    """Seconds that each station took for the whole graph."""
    count, spent = len(parents), dict.fromkeys(STATIONS, 0.0)
    with place.scratch() as scratch:
        root = os.path.join(scratch, "spool")
        os.mkdir(root)
        initialise(PosixFileSystem(root), SystemClock(), "benchmark", root)
        Path(root, "spool.toml").write_text("[durability]\nfsync = false\n[retention]\nkeep = 10000000\n")
        with Spool(root) as spool:
            drafts: list[dict[str, Any]] = [
                {"id": f"n{number}", "python": "tools.benchmark.workload:warm", "after": needs}
                for number, needs in enumerate(parents)
            ]
            spool.submit_many(drafts)
        first = _master(root, "first")
        while not _admitted(first, count):
            spent["admission"] += _timed(first.step)
        first.close()
        second = _master(root, "second")
        while not _admitted(second, count):
            spent["restart"] += _timed(second.step)
        _drain(root, second, count, spent)
        second.close()
    return spent


def _master(root: str, name: str) -> Master:
    store = open_store(PosixFileSystem(root), SystemClock(), name, root)
    store.open_tmp()
    return Master(store, SystemHost())


def _admitted(master: Master, count: int) -> bool:
    desk = master.desk
    if desk is None or desk.door.batches:
        return False
    return len(desk.backlog) + sum(map(len, desk.view.ready.values())) >= count


def _drain(root: str, master: Master, count: int, spent: dict[str, float]) -> None:
    watched = Watched(root)
    store = open_store(watched, SystemClock(), "worker", root)
    config = WorkerConfig.model_validate({"python": {"allow": ["*"]}})
    can = Capabilities(cpus=SLOTS, mem_mb=1 << 20, python=("*",))
    runner = InstantRunner()
    worker = Worker(store, SystemHost(), runner, MemoryScratch(), config, can, SLOTS, root=root, environ={})
    worker.register()
    until = time.monotonic() + GIVE_UP_S
    while len(os.listdir(os.path.join(root, "completed"))) < count:
        if time.monotonic() > until:
            raise OSError(f"a graph of {count} did not end within {GIVE_UP_S:g} s")
        spent["release"] += _timed(master.step)
        watched.claiming_at, began = None, time.perf_counter()
        worker.step()
        ended = time.perf_counter()
        parted = watched.parted(ended)
        spent["completion"] += parted - began
        spent["claim"] += ended - parted
    worker.close()
    assert not tree.under_way(Path(root))


def _timed(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began
