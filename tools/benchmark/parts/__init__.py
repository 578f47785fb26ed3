"""The parts of tools/bench by name: what each measures, and whether something has to be installed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.benchmark.bench import Bench
from tools.benchmark.figure import Figure
from tools.benchmark.parts import standing, throughput


@dataclass(frozen=True, slots=True)
class Part:
    """One part. peers: whether something has to be installed for it."""

    measure: Callable[[Bench], list[Figure]]
    meaning: str
    peers: bool = False


PARTS = {
    "queue": Part(throughput.queue, "put in, take out, acknowledge; nothing is run", peers=True),
    "call": Part(throughput.call, "a Python callable in a warm process, end to end with results", peers=True),
    "process": Part(throughput.process, "one process for each task", peers=True),
    "start": Part(standing.start, "submit to start; a worker's start to its first claim"),
    "idle": Part(standing.idle, "what a cluster costs while nothing happens, and at 100 tasks a minute"),
}
