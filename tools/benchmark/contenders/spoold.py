"""spoold itself: the real `spool master` with real `spool worker`s; for the queue alone, workers that run nothing.

Everything but fsync is at its default; workers that run nothing have sixteen slots each. All nodes are up before the
backlog is published, and time is counted from then until the last commit: admission is in it. Touches: its folder,
processes.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from spoold import Spool
from tools.benchmark import ledger, tree
from tools.benchmark.cluster import CHECKOUT, Cluster
from tools.benchmark.order import Order, Outcome, serve

LOOK_S = 0.005
SETTLE_WITHIN_S = 120.0
KILLS = 3
QUEUE_SLOTS = 16
WORKLOAD = "tools.benchmark.workload"


def tasks(order: Order) -> Iterator[dict[str, Any]]:
    """The backlog, in the form that the tier runs."""
    for number in range(order.tasks):
        task_id = f"t-{number}"
        if order.tier == "process":
            yield {"id": task_id, "command": ["/bin/true"]}
        elif order.nap_s:
            yield {"id": task_id, "python": f"{WORKLOAD}:nap", "args": [order.ledger, number, order.nap_s]}
        else:
            yield {"id": task_id, "python": f"{WORKLOAD}:noop", "args": [order.ledger, number]}


def run(order: Order) -> Outcome:
    """As ordered."""
    names = () if order.tier == "queue" else tuple(f"w{number}" for number in range(order.workers))
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(order.folder, names, fsync=order.fsync, slots=order.slots))
        if order.tier == "queue":
            stack.enter_context(simulated(cluster, order.workers, 1, order.slots or QUEUE_SLOTS))
        return _measure(cluster, order)


@contextlib.contextmanager
def simulated(cluster: Cluster, count: int, hosted: int, slots: int) -> Iterator[None]:
    """Workers that run nothing: so many processes, in each so many workers, with so many slots each."""
    command = [sys.executable, "-P", "-m", "tools.benchmark.simulated", str(cluster.root)]
    processes = []
    for number in range(count):
        args = [*command, f"q{number}-", str(hosted), str(slots)]
        processes.append(subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=CHECKOUT))
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in processes:
            process.communicate()


def _measure(cluster: Cluster, order: Order) -> Outcome:
    with cluster.client() as spool:
        if order.tier != "queue":
            warm(spool, order)
        before = used(cluster)
        began = time.monotonic()
        since = time.monotonic()
        if order.mode == "live":
            for task in tasks(order):
                spool.submit(task)
        else:
            spool.submit_many(tasks(order))
            since = time.monotonic()
        fill = order.tasks / (time.monotonic() - began)
        if order.mode == "kill":
            _kill(cluster)
        whole = _await(cluster, order, since)
        seconds = time.monotonic() - since
    done = order.tasks if whole else ledger.count(order.ledger)
    more = costs(cluster, before, done) if order.mode != "kill" else {}
    cluster.stop()  # the leader may be archiving: what moves would be seen twice
    # Only a drain may be cut off; then what has not ended is not lost.
    lost, doubled = _verdict(cluster, order) if whole or order.mode != "drain" else (0, 0)
    if order.mode == "kill":
        numbers = [number for number, _ in ledger.read(order.ledger)]
        more["ran twice"] = float(ledger.lost_and_doubled(numbers, order.tasks)[1])
    return Outcome(done / seconds, done, seconds, fill, lost, doubled, more=more)


def warm(spool: Spool, order: Order) -> None:
    """Every worker has started what it needs for such a task, as the others' processes have when they are timed."""
    if order.tier == "process":
        warm: list[dict[str, Any]] = [{"id": f"warm-{n}", "command": ["/bin/true"]} for n in range(8)]
    else:
        warm = [{"id": f"warm-{n}", "python": "tools.benchmark.workload:warm", "args": [0.05]} for n in range(16)]
    spool.wait(spool.submit_many(warm), timeout=60)
    time.sleep(0.2)


def _kill(cluster: Cluster) -> None:
    """A worker is killed and another one started, three times; then the same with the master."""
    for number in range(KILLS):
        time.sleep(random.uniform(0.4, 0.8))
        cluster.kill("w0" if number == 0 else f"again{number - 1}")
        cluster.start_worker(f"again{number}")
    cluster.kill("master")
    cluster.start_master("master2")


def _await(cluster: Cluster, order: Order, since: float) -> bool:
    """Until all is committed (True), or the bound is over."""
    limit = max(order.bound_s, SETTLE_WITHIN_S) if order.mode == "kill" else order.bound_s
    while time.monotonic() - since < limit:
        ran = order.tier == "process" or ledger.count(order.ledger) >= order.tasks - (order.mode == "kill")
        if ran and not tree.under_way(cluster.root):
            return True
        time.sleep(LOOK_S)
    return False


Used = dict[str, tuple[float, float, float]]


def used(cluster: Cluster) -> Used:
    """Seconds of CPU of each node so far: alone, what it started and what still runs, and what has ended below it."""
    found = {}
    for name in tuple(cluster.processes):
        alone = cluster.cpu_s(name, alone=True)
        found[name] = (alone, cluster.cpu_s(name) - alone, cluster.collected_s(name))
    return found


def costs(cluster: Cluster, before: Used, done: int) -> dict[str, float]:
    """Milliseconds of CPU for each task since `before` (see `used`), and peaks of memory in MiB.

    A worker's CPU is told apart: its own, that of the processes in which it runs tasks, that of the tasks' programs.
    """
    more: dict[str, float] = {}
    for name, now in used(cluster).items():
        kind = "master" if name == "master" else "worker"
        kinds = (kind, "helpers", "programs") if kind == "worker" else (kind,)
        for what, since, until in zip(kinds, before[name], now, strict=False):
            more[f"{what} CPU ms"] = more.get(f"{what} CPU ms", 0.0) + (until - since) / max(done, 1) * 1000
        more[f"{kind} peak MiB"] = max(more.get(f"{kind} peak MiB", 0.0), cluster.peak_mb(name))
    return more


def _verdict(cluster: Cluster, order: Order) -> tuple[int, int]:
    """How many tasks were lost (no commit, or one without its result), and how many committed twice."""
    found, bare = tree.commits(cluster.root)
    mine = {f"t-{number}" for number in range(order.tasks)}
    lost = len(mine - found.keys()) + bare
    return lost, sum(1 for task_id, times in found.items() if task_id in mine and times > 1)


if __name__ == "__main__":
    serve(run)
