"""costs: what a task costs the machine: CPU of master and workers, their memory, and system calls.

Touches: clusters of its own; strace where it is there.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tools.benchmark import tree
from tools.benchmark.bench import Bench
from tools.benchmark.cluster import Cluster
from tools.benchmark.contenders.spoold import tasks, warm
from tools.benchmark.figure import Figure, number
from tools.benchmark.order import Order
from tools.benchmark.strace import counted

SHOWN = {
    "master CPU ms": "CPU of the master for each task",
    "worker CPU ms": "CPU of the workers themselves for each task",
    "helpers CPU ms": "CPU of what workers start to run tasks in, for each task",
    "programs CPU ms": "CPU of what each task runs, from its fork to its end",
    "master peak MiB": "peak memory of the master",
    "worker peak MiB": "peak memory of a worker and what it started",
}
MOST = 6
TIERS = {"call": "a callable", "process": "a process"}


def costs(bench: Bench) -> list[Figure]:
    """CPU and peak memory from drains that nobody looks into; system calls from others that strace looks into."""
    figures = []
    for tier, meaning in TIERS.items():
        order = Order("", tier, tasks=bench.scale.depths[0], bound_s=bench.scale.bound_s)
        outcomes = [bench.run("spoold", bench.disk, order) for _ in range(3)]
        for name, said in SHOWN.items():
            samples = tuple(outcome.more[name] for outcome in outcomes if name in outcome.more)
            figures.append(Figure("costs", f"{meaning}: {said}", name.rpartition(" ")[2], samples))
        figures += _calls(bench, tier, meaning, 10_000)
    return [*figures, *_calls(bench, "call", "a callable that is archived at once", 0)]


def _calls(bench: Bench, tier: str, meaning: str, keep: int) -> list[Figure]:
    """keep: how many ended tasks are not archived."""
    names = {kind: f"{meaning}: system calls of the {kind} for each task" for kind in ("master", "workers")}
    if not bench.has("strace"):
        why = bench.peers.missing.get("strace", "strace is not there")
        return [Figure("costs", name, "calls", (), note=f"missing: {why}") for name in names.values()]
    count = bench.scale.depths[0]
    with ExitStack() as stack:
        folder = stack.enter_context(bench.disk.scratch())
        cluster = stack.enter_context(Cluster(folder, keep=keep))
        spool = stack.enter_context(cluster.client())
        watching = stack.enter_context(ExitStack())
        order = Order(folder, tier, tasks=count)
        warm(spool, order)
        seen: dict[str, Counter[str]] = {}
        for kind, nodes in (("master", ("master",)), ("workers", ("w1", "w2"))):
            pids = [process.pid for node in nodes for process in cluster.tree(node)]
            seen[kind] = watching.enter_context(counted(pids, Path(folder) / f"{kind}.strace"))
        spool.submit_many(tasks(order))
        while tree.under_way(cluster.root) or len(os.listdir(cluster.root / "completed")) > keep:
            time.sleep(0.02)
        watching.close()
    return [
        Figure("costs", names[kind], "calls", (calls.total() / count,), note=_most(calls, count))
        for kind, calls in seen.items()
    ]


def _most(calls: Counter[str], count: int) -> str:
    return ", ".join(f"{name} {number(times / count)}" for name, times in calls.most_common(MOST))
