"""restart and slots: a leader with a large backlog behind it, and with many workers before it.

Touches: clusters of its own, without fsync, since it is the program that is asked about and not the disk.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from spoold import Spool
from tools.benchmark import ledger, tree
from tools.benchmark.bench import Bench, tell
from tools.benchmark.cluster import Cluster
from tools.benchmark.contenders.spoold import simulated
from tools.benchmark.figure import Figure, Target, depth
from tools.benchmark.machine import Place

NOOP = "tools.benchmark.workload:noop"
PROBES = 20
ADMIT_WITHIN_S = 3600.0
PROCESSES, HOSTED, SLOTS = 2, 5, 20


def restart(bench: Bench) -> list[Figure]:
    """So many tasks wait that nobody serves; the leader is killed, and another has to begin."""
    figures, claims = [], {}
    for waiting in bench.scale.waiting:
        found, claims[waiting] = _with_waiting(bench.places[-1], waiting)
        figures += found
    least, most = min(claims), max(claims)
    ratio = (statistics.median(claims[most]) / statistics.median(claims[least]),)
    name = f"submit to start with {depth(most)} waiting / with {depth(least)}"
    return [*figures, Figure("restart", name, "×", ratio, Target(1.5, most=True))]


def _with_waiting(place: Place, waiting: int) -> tuple[list[Figure], list[float]]:
    told = f"{depth(waiting)} waiting, {place.kind}"
    with place.scratch() as folder, Cluster(folder, ()) as cluster, cluster.client() as spool:
        began = time.monotonic()
        spool.submit_many({"type": "later", "python": NOOP, "args": ["", n]} for n in range(waiting))
        handed_in = time.monotonic() - began
        admitted = _until_admitted(cluster.root, waiting)
        tell(f"restart: {waiting} admitted after {handed_in + admitted:.1f} s")
        cluster.kill("master")
        began = time.monotonic()
        cluster.start_master("second")
        spool.submit(id="probe", type="probe", python=NOOP, args=["", 0])
        while not _stands_ready(cluster.root, "type=probe"):
            time.sleep(0.01)
        back = time.monotonic() - began
        claims = _probes(cluster, spool)
        peak = cluster.peak_mb("second")
    figures = [
        Figure("restart", f"admission; {told}", "tasks/s", (waiting / admitted,)),
        Figure(
            "restart", f"a new leader's start to its first admission; {told}", "s", (back,), Target(60, most=True)
        ),
        Figure("restart", f"the new leader's peak memory; {told}", "MiB", (peak,), Target(1024, most=True)),
        Figure("restart", f"submit to start of another type; {told}", "ms", tuple(claims)),
    ]
    return figures, claims


def _until_admitted(root: Path, count: int) -> float:
    began = time.monotonic()
    while time.monotonic() - began < ADMIT_WITHIN_S:
        busy = os.listdir(root / "pending") or any(os.listdir(door) for door in _doors(root))
        if not busy and tree.standing(root, "waiting") + tree.standing(root, "ready") >= count:
            return time.monotonic() - began
        time.sleep(0.02 if count <= 10_000 else 0.5)
    raise OSError(f"{count} tasks were not admitted within {ADMIT_WITHIN_S:g} s")


def _doors(root: Path) -> list[Path]:
    return [root / "admitting" / door for door in os.listdir(root / "admitting")]


def _stands_ready(root: Path, lane: str) -> bool:
    lanes = [name for name in os.listdir(root / "ready") if name.startswith(lane)]
    return any(os.listdir(root / "ready" / name) for name in lanes)


def _probes(cluster: Cluster, spool: Spool) -> list[float]:
    """Tasks of a type that a worker serves, one after the other, each with the backlog behind it: ms to start."""
    folder = str(cluster.folder / "ledger")
    os.makedirs(folder)
    cluster.start_worker("probing", "--types", "probe")
    spool.wait("probe", timeout=120)
    began: dict[int, float] = {}
    for number in range(PROBES):
        time.sleep(0.1)
        began[number] = time.time()
        spool.wait(spool.submit(type="probe", python=NOOP, args=[folder, number]), timeout=120)
    return [(at / 1e9 - began[number]) * 1000 for number, at in ledger.read(folder)]


def slots(bench: Bench) -> list[Figure]:
    """Ten workers of twenty slots that run nothing, against two workers of two, turn by turn."""
    tasks = min(10_000, bench.scale.depths[-1])
    crowd: list[float] = []
    few: list[float] = []
    used: list[float] = []
    for _ in range(2):
        rate, share = _drained(bench.places[-1], tasks, PROCESSES, HOSTED, SLOTS)
        crowd.append(rate)
        used.append(share)
        few.append(_drained(bench.places[-1], tasks, 2, 1, 2)[0])
    told = f"{depth(tasks)} tasks, {bench.places[-1].kind}"
    ratio = tuple(a / b for a, b in zip(crowd, few, strict=True))
    return [
        Figure("slots", f"200 slots in ten workers; {told}", "tasks/s", tuple(crowd)),
        Figure("slots", f"4 slots in two workers; {told}", "tasks/s", tuple(few)),
        Figure("slots", "200 slots / 4 slots", "×", ratio),
        Figure("slots", f"the master's CPU for each task with 200 slots; {told}", "ms", tuple(used)),
    ]


def _drained(place: Place, tasks: int, processes: int, hosted: int, per_worker: int) -> tuple[float, float]:
    """Tasks a second, and milliseconds of the master's CPU for each."""
    with (
        place.scratch() as folder,
        Cluster(folder, ()) as cluster,
        cluster.client() as spool,
        simulated(cluster, processes, hosted, per_worker),
    ):
        drafts = [{"python": NOOP, "args": [str(n), "not noted"]} for n in range(tasks)]
        used = cluster.cpu_s("master")
        spool.submit_many(drafts)
        began = time.monotonic()
        while tree.under_way(cluster.root):
            time.sleep(0.005)
        seconds = time.monotonic() - began
        return tasks / seconds, (cluster.cpu_s("master") - used) / tasks * 1000
