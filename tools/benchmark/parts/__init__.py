"""The parts of tools/bench by name: what each measures, and whether something has to be installed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.benchmark.bench import Bench
from tools.benchmark.figure import Figure
from tools.benchmark.parts import costs, graphs, latency, masks, scale, sizes, standing, throughput, trouble, views


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
    "live": Part(trouble.live, "a producer goes on while tasks are drained", peers=True),
    "kill": Part(trouble.kill, "workers and the master are killed with -9 in the middle: lost, doubled", peers=True),
    "submit": Part(latency.submit, "many tasks handed in at once, with and without fsync"),
    "latency": Part(latency.latency, "p50 and p99 of each step of one task's way; when status shows its end"),
    "start": Part(standing.start, "submit to start; a worker's start to its first claim"),
    "idle": Part(standing.idle, "what a cluster costs while nothing happens, and at 100 tasks a minute"),
    "costs": Part(costs.costs, "CPU, memory and system calls for each task", peers=True),
    "redaction": Part(masks.masks, "how many MB of output a worker masks in a second"),
    "restart": Part(scale.restart, "a leader killed with a backlog behind it: time, memory, claims"),
    "slots": Part(scale.slots, "200 slots against 4, with workers that run nothing"),
    "views": Part(views.views, "what it costs to look at a deep backlog: memory, CPU at rest, a page, a search"),
    "size": Part(sizes.size, "what submit, explain, status, ls and cancel cost while 100,000 tasks wait"),
    "graphs": Part(graphs.graphs, "what a task of a large DAG costs at each station"),
}
