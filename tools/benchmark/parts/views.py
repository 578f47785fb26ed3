"""views: what it costs to look at a spool with many tasks, with `client.view()` and with `spool web`.

Law: one real master, and no worker: what is measured is the one who looks. The tasks are of four types, of which all
are paused, in twenty batches.

Touches: clusters of its own, processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from spoold import Spool
from tools.benchmark.bench import CHECKOUT, Bench
from tools.benchmark.cluster import Cluster, Trouble
from tools.benchmark.figure import Figure, Target, depth
from tools.benchmark.viewing import QUESTIONS

TYPES, BATCHES = ("build", "test", "review", "lint"), 20
GIVE_UP_S, ADMITTED_PER_S = 120.0, 200.0


def views(bench: Bench) -> list[Figure]:
    """A view at the deepest backlog of this scale, but at most 100,000 tasks."""
    count = min(100_000, bench.scale.depths[-1])
    with bench.disk.scratch() as folder, Cluster(folder, (), keep=10_000_000) as cluster:
        _fill(cluster, count)
        told = _look(cluster, bench.scale.seconds)
    of = f"{depth(count)} tasks: "
    return [
        Figure("views", f"{of}listing and history", "s", (told["first look s"],)),
        Figure("views", f"{of}at rest", "% core", (told["at rest %"],), Target(1, most=True)),
        Figure("views", f"{of}memory of the program", "MiB", (told["memory MiB"],), Target(200, most=True)),
        *(Figure("views", f"{of}{name}", "ms", (told[name],), Target(200, most=True)) for name in QUESTIONS),
        Figure("views", f"{of}why all of them wait, counted", "ms", (told["reasons"],)),
    ]


def _fill(cluster: Cluster, count: int) -> None:
    with cluster.client() as spool:
        for kind in TYPES:
            spool.pause(kind)
        spool.submit_many(list(_tasks(count)))
        until = time.monotonic() + GIVE_UP_S + count / ADMITTED_PER_S
        while _admitted(spool) < count:
            if time.monotonic() > until:
                raise Trouble(f"{count} tasks were not admitted in time")
            time.sleep(0.5)


def _admitted(spool: Spool) -> int:
    tasks = spool.status().tasks
    return tasks.waiting + tasks.ready


def _tasks(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        batch = number * BATCHES // count
        yield {
            "id": f"t{batch:02}-{number:06}",
            "command": ["true"],
            "batch": f"batch{batch:02}",
            "type": TYPES[number % len(TYPES)],
        }


def _look(cluster: Cluster, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-P", "-m", "tools.benchmark.viewing", str(cluster.root), str(seconds)]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(CHECKOUT)})
    if done.returncode:
        raise Trouble(f"the view ended with {done.returncode}: {done.stderr.decode()[-300:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
