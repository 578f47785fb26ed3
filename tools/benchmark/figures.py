"""What is measured, and how each figure is come by.

Law: a figure is a plain count of samples that can be looked at; machines differ, so none decides about pass or fail
here but its limit is shown beside it. Touches: the cluster that it is given.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tools.benchmark.cluster import Cluster

START_LIMIT_S = 0.100
IDLE_LIMIT = 0.02
# A cluster that has just worked looks around more often for ten seconds.
QUIET_S = 12.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its value and limit in `unit`, the samples it was made of, and what it means."""

    name: str
    unit: str
    value: float
    limit: float
    meaning: str
    samples: tuple[float, ...]

    @property
    def holds(self) -> bool:
        """Whether the value is below the limit."""
        return self.value < self.limit


def start_latency(cluster: Cluster, tasks: int, pause_s: float) -> tuple[Figure, Figure]:
    """How soon a task starts that `spool submit -- true` dropped, with idle workers, one after the other.

    From two moments: when the command stamped the task, just before it wrote and published it, which is the figure
    that has the limit; and when the command itself was started, which adds what Python takes to start.
    """
    from_publishing: list[float] = []
    from_command: list[float] = []
    for _ in range(tasks):
        time.sleep(pause_s)
        began = time.time()
        task = cluster.spool("submit", "--wait", "--", "true").strip()
        shown = json.loads(cluster.spool("show", task, "--json"))
        started = _moment(shown["started_at"])
        from_publishing.append(started - _moment(shown["created_at"]))
        from_command.append(started - began)
    return (
        Figure(
            "submit to start",
            "s",
            statistics.median(from_publishing),
            START_LIMIT_S,
            f"median of {tasks}, from publishing by the CLI to the start of the command, workers idle",
            tuple(from_publishing),
        ),
        Figure(
            "command to start",
            "s",
            statistics.median(from_command),
            1.0,
            f"median of {tasks}, from the start of the CLI's process: Python's own start is in it",
            tuple(from_command),
        ),
    )


def idle_cpu(cluster: Cluster, seconds: float) -> Figure:
    """What one master and three workers use of one core while nothing happens."""
    time.sleep(QUIET_S)
    before, began = cluster.cpu_s(), time.monotonic()
    shares: list[float] = []
    for _ in range(4):
        at, used = time.monotonic(), cluster.cpu_s()
        time.sleep(seconds / 4)
        shares.append((cluster.cpu_s() - used) / (time.monotonic() - at))
    share = (cluster.cpu_s() - before) / (time.monotonic() - began)
    meaning = f"share of one core over {seconds:g} s, one master and three workers together"
    return Figure("idle cluster", "of a core", share, IDLE_LIMIT, meaning, tuple(shares))


def spread(samples: Sequence[float]) -> str:
    """The smallest and the largest sample."""
    return f"{min(samples):.3f} – {max(samples):.3f}"


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
