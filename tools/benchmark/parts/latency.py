"""latency and submit: how long one task takes through the pool, moment by moment, and how fast many are handed in.

Moments are taken where they can be seen: the call by its caller, the start by the ledger, the rest from the journals,
whose stamps are to the millisecond. The pool has nothing else to do. Touches: clusters of its own.
"""

from __future__ import annotations

import os
import time

from spoold import Spool
from spoold.client.spool.spool_status import status
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem
from tools.benchmark import ledger
from tools.benchmark.bench import Bench
from tools.benchmark.cluster import Cluster
from tools.benchmark.figure import Figure, Target, percentile
from tools.benchmark.machine import Place
from tools.benchmark.parts.standing import moment

NOOP = "tools.benchmark.workload:noop"
BETWEEN_S = 0.03
LOOKS = 20
STEPS = ("submit call", "submitted to admitted", "admitted to claimed", "submit to start", "submit to result in hand")
TARGETS = {
    ("submit call", 0.5): Target(5, most=True),
    ("submit call", 0.99): Target(50, most=True),
    ("submit to start", 0.5): Target(20, most=True),
}


def latency(bench: Bench) -> list[Figure]:
    """p50 and p99 of every step of one task's way, and how long until `status` shows that it has ended."""
    figures = []
    for place in bench.places:
        for fsync in (True, False):
            with place.scratch() as folder, Cluster(folder, fsync=fsync) as cluster, cluster.client() as spool:
                told = f"{place.kind}{', fsync' if fsync else ''}"
                steps = _one_by_one(cluster, spool, bench.scale.samples)
                for step in STEPS:
                    figures += _percentiles(step, told, steps[step])
                if fsync:
                    figures.append(_visible(cluster, spool, told, min(LOOKS, bench.scale.samples)))
    return figures


def _percentiles(step: str, told: str, samples: list[float]) -> list[Figure]:
    p50 = Figure("latency", f"{step}, p50; {told}", "ms", tuple(samples), TARGETS.get((step, 0.5)))
    note = f"of {len(samples)}"
    worst = (percentile(samples, 0.99),)
    return [p50, Figure("latency", f"{step}, p99; {told}", "ms", worst, TARGETS.get((step, 0.99)), note)]


def _one_by_one(cluster: Cluster, spool: Spool, count: int) -> dict[str, list[float]]:
    folder = str(cluster.folder / "ledger")
    os.makedirs(folder, exist_ok=True)
    spool.wait(spool.submit_many([{"python": NOOP, "args": [folder, 10**6]} for _ in range(8)]), timeout=60)
    began: dict[int, float] = {}
    steps: dict[str, list[float]] = {step: [] for step in STEPS}
    for number in range(count):
        time.sleep(BETWEEN_S)
        began[number] = time.time()
        task = spool.submit(id=f"one-{number}", python=NOOP, args=[folder, number])
        steps["submit call"].append((time.time() - began[number]) * 1000)
        spool.wait(task, timeout=60)
        steps["submit to result in hand"].append((time.time() - began[number]) * 1000)
    for number, at in ledger.read(folder):
        if number in began:
            steps["submit to start"].append((at / 1e9 - began[number]) * 1000)
    moments = {(event.event, event.task): moment(event.at) for event in spool.iter_events()}
    for number in range(count):
        admitted, claimed = (moments[kind, f"one-{number}"] for kind in ("ADMITTED", "CLAIMED"))
        in_hand = began[number] + steps["submit call"][number] / 1000
        steps["submitted to admitted"].append(max(0.0, (admitted - in_hand) * 1000))
        steps["admitted to claimed"].append(max(0.0, (claimed - admitted) * 1000))
    return steps


def _visible(cluster: Cluster, spool: Spool, told: str, count: int) -> Figure:
    """A task has ended; when does the leader's snapshot, which `spool status` prints, count it?"""
    folder, host = str(cluster.folder / "seen"), SystemHost()
    os.makedirs(folder)
    samples = []
    for number in range(count):
        time.sleep(0.5)
        before = status(spool.store, host, spool.store.clock).tasks.completed
        spool.submit(python=NOOP, args=[folder, number])
        while status(spool.store, host, spool.store.clock).tasks.completed == before:
            time.sleep(0.002)
        seen = time.time()
        ran = next(at for ran, at in ledger.read(folder) if ran == number)
        samples.append((seen - ran / 1e9) * 1000)
    name = f"a task's end to its being seen in status; {told}"
    return Figure("latency", name, "ms", tuple(samples), Target(300, most=True))


def submit(bench: Bench) -> list[Figure]:
    """`submit_many`: checked, written, published; nobody is there to take it."""
    figures = []
    tasks = min(100_000, bench.scale.depths[-1])
    for place in bench.places:
        samples: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(3):
            for fsync, rates in samples.items():
                rates.append(_handed_in(place, tasks, fsync))
        for fsync, rates in samples.items():
            name = f"submit_many of {tasks:,}; {place.kind}{', fsync' if fsync else ''}"
            figures.append(Figure("submit", name, "tasks/s", tuple(rates), Target(20_000) if fsync else None))
    return figures


def _handed_in(place: Place, tasks: int, fsync: bool) -> float:
    with place.scratch() as root:
        initialise(PosixFileSystem(root), SystemClock(), "benchmark", root)
        with open(f"{root}/spool.toml", "w", encoding="utf-8") as file:
            file.write(f"[durability]\nfsync = {'true' if fsync else 'false'}\n")
        with Spool(root) as spool:
            began = time.perf_counter()
            spool.submit_many({"python": NOOP, "args": ["", number]} for number in range(tasks))
            return tasks / (time.perf_counter() - began)
