"""size: what the commands of a person cost while one batch of many tasks waits, with limits and locks.

Law: CPU seconds are measured, of the command alone with all that it starts, or of the master. A loaded machine then
changes a figure by its caches only. No worker runs, and the leader's own work beside a command is no figure here.

Touches: clusters of its own, processes, without fsync.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.benchmark import tree
from tools.benchmark.bench import Bench
from tools.benchmark.cluster import Cluster, Trouble
from tools.benchmark.figure import Figure, Target, depth

BATCH, LIMITS, FOLDERS = "big", 20, 50
LOOKS, MOST = 5, 100_000
WITHIN_S = 1800.0
# The commands, and how many seconds of CPU each may take with 100,000 tasks.
ASKED = {
    ("explain", "t{last:06}"): 0.5,
    ("status", "--batch", BATCH): 1.0,
    ("ls", "--limit", "20"): 0.3,
}


def size(bench: Bench) -> list[Figure]:
    """Submit, explain, status, ls and cancel at the deepest backlog of this scale, but at most 100,000 tasks."""
    count = min(MOST, bench.scale.depths[-1])
    settings = "".join(f"[limits.lim{number}]\nmax = 3\n" for number in range(LIMITS))
    of = f"{depth(count)} waiting, {bench.places[-1].kind}: spool "
    with bench.places[-1].scratch() as folder, Cluster(folder, (), settings=settings) as cluster:
        tasks = cluster.folder / "tasks.jsonl"
        tasks.write_text("".join(f"{json.dumps(task)}\n" for task in _tasks(count)))
        figures = [_figure(of, "submit FILE", (_cpu_s(cluster, "submit", str(tasks)),), 10.0)]
        _await(cluster.root, count)
        for words, most in ASKED.items():
            said = tuple(word.format(last=count - 1) for word in words)
            figures.append(_figure(of, " ".join(said), tuple(_cpu_s(cluster, *said) for _ in range(LOOKS)), most))
        used = cluster.cpu_s("master")
        cancel = "cancel", "--batch", BATCH, "--yes"
        figures.append(_figure(of, " ".join(cancel), (_cpu_s(cluster, *cancel),), 1.0))
        _await(cluster.root, 0)
        done = (cluster.cpu_s("master") - used,)
        figures.append(_figure(of, "cancel --batch, the master's part", done, 20.0))
    return figures


def _figure(of: str, name: str, samples: tuple[float, ...], most: float) -> Figure:
    return Figure("size", f"{of}{name}", "s of CPU", samples, Target(most, most=True))


def _cpu_s(cluster: Cluster, *words: str) -> float:
    """Seconds of CPU of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cluster.spool(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _await(root: Path, count: int) -> None:
    """Wait until so many tasks wait or are ready, and nothing is asked of the leader."""
    until = time.monotonic() + WITHIN_S
    while tree.standing(root, "waiting") + tree.standing(root, "ready") != count or any((root / "control").iterdir()):
        if time.monotonic() > until:
            raise Trouble(f"there were not {count:,} tasks within {WITHIN_S:g} s")
        time.sleep(0.5)


def _tasks(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        task: dict[str, Any] = {
            "id": f"t{number:06}",
            "command": ["true"],
            "batch": BATCH,
            "type": ("build", "test")[number % 2],
        }
        if number % 3 == 0:
            task["uses"] = {f"lim{number % LIMITS}": 1}
        if number % 4 == 0:
            task["locks"] = {"write": [f"src/{number % FOLDERS}"]}
        yield task
