"""idle and start: what a cluster costs while little or nothing happens, and how soon something does.

Touches: clusters of its own, with default settings and fsync, as people have them.
"""

from __future__ import annotations

import json
import time
from datetime import datetime

from tools.benchmark.bench import Bench
from tools.benchmark.cluster import Cluster
from tools.benchmark.figure import Figure, Target

# A cluster that has just worked looks around more often for ten seconds.
QUIET_S = 12.0
PER_MINUTE = 100
# How many processes of each short command are started, and how long (ms) one may take from start to end.
STARTS = 20
SHORT = {("--help",): None, ("status",): 150, ("submit", "--", "true"): 120}


def idle(bench: Bench) -> list[Figure]:
    """How much of a core: a master and three workers while nothing happens; the master at 100 tasks a minute."""
    seconds = bench.scale.seconds
    with bench.disk.scratch() as folder, Cluster(folder, ("w1", "w2", "w3"), fsync=True) as cluster:
        time.sleep(min(QUIET_S, 6 * seconds))
        nothing = [_share(cluster, seconds / 4) for _ in range(4)]
        with cluster.client() as spool:
            steady = []
            for _ in range(4):
                used, began = cluster.cpu_s("master"), time.monotonic()
                for _ in range(max(1, round(seconds / 4 * PER_MINUTE / 60))):
                    spool.submit(command=["/bin/true"])
                    time.sleep(60 / PER_MINUTE)
                steady.append((cluster.cpu_s("master") - used) / (time.monotonic() - began) * 100)
    return [
        Figure("idle", "a master and three workers, nothing to do", "% core", tuple(nothing), Target(1, most=True)),
        Figure("idle", "the master at 100 tasks/min", "% core", tuple(steady), Target(5, most=True)),
    ]


def _share(cluster: Cluster, seconds: float) -> float:
    used, began = cluster.cpu_s(), time.monotonic()
    time.sleep(seconds)
    return (cluster.cpu_s() - used) / (time.monotonic() - began) * 100


def start(bench: Bench) -> list[Figure]:
    """From `spool submit` to the start of the command; from a worker's own start to its first claim; and how long
    short commands take from start to end.
    """
    from_publishing: list[float] = []
    from_command: list[float] = []
    with bench.disk.scratch() as folder, Cluster(folder, ("w1", "w2", "w3"), fsync=True) as cluster:
        for _ in range(min(30, bench.scale.samples)):
            time.sleep(0.3)
            began = time.time()
            task = cluster.spool("submit", "--wait", "--", "true").strip()
            shown = json.loads(cluster.spool("show", task, "--json"))
            started = moment(shown["started_at"])
            from_publishing.append((started - moment(shown["created_at"])) * 1000)
            from_command.append((started - began) * 1000)
        short = [_short(cluster, words, most) for words, most in SHORT.items()]
    told = "from what the command stamps before it writes the task"
    return [
        Figure("start", "spool submit to start", "ms", tuple(from_publishing), Target(100, most=True), told),
        Figure("start", "the same, and the command's own start", "ms", tuple(from_command)),
        *short,
        _first_claim(bench),
    ]


def _short(cluster: Cluster, words: tuple[str, ...], most: float | None) -> Figure:
    """One command as a process of its own, from start to end, while a leader leads."""
    samples = []
    for _ in range(STARTS):
        began = time.monotonic()
        cluster.spool(*words)
        samples.append((time.monotonic() - began) * 1000)
    name = f"spool {' '.join(words)}, from start to end"
    return Figure("start", name, "ms", tuple(samples), None if most is None else Target(most, most=True))


def _first_claim(bench: Bench) -> Figure:
    """Tasks stand ready; a worker is started: when has it renamed the first of them to itself?"""
    samples = []
    with bench.disk.scratch() as folder, Cluster(folder, (), fsync=True) as cluster, cluster.client() as spool:
        spool.submit_many({"command": ["/bin/true"]} for _ in range(20 * bench.scale.samples))
        while not any((cluster.root / "ready").glob("*/*")):
            time.sleep(0.01)
        for number in range(min(5, bench.scale.samples)):
            began = time.time()
            cluster.start_worker(f"first{number}")
            claim = None
            while claim is None:
                time.sleep(0.02)
                claim = next(
                    (
                        one
                        for one in spool.iter_events()
                        if one.event == "CLAIMED" and f"first{number}-" in one.writer
                    ),
                    None,
                )
            samples.append((moment(claim.at) - began) * 1000)
            cluster.kill(f"first{number}")
    return Figure("start", "a worker's start to its first claim", "ms", tuple(samples), Target(500, most=True))


def moment(text: str) -> float:
    """A stamp of RFC 3339 as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
