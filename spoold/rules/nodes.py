"""Heartbeats as `spool status` shows them: one line per worker, and how many are in which state."""

from __future__ import annotations

from collections.abc import Iterable

from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.snapshot import Node, WorkerCounts

DEAD = "dead"


def node_of(beat: Heartbeat, *, dead: bool = False) -> Node:
    """A worker's heartbeat as status shows it."""
    can = beat.capabilities
    return Node(
        worker=beat.node,
        host=beat.host.hostname,
        state=DEAD if dead else beat.status,
        slots=beat.slots,
        running=len(beat.running),
        cpus=can.cpus if can else 0,
        mem_mb=can.mem_mb if can else 0,
        mem_available_mb=beat.mem_available_mb,
        load=beat.load,
        labels=can.labels if can else (),
        types=(can.types or can.handlers) if can else (),
        tasks=tuple(run.model_dump(mode="json") for run in beat.running),
    )


def count_workers(states: Iterable[str]) -> WorkerCounts:
    """How many workers are in which state; a halted one takes nothing new, as a draining one."""
    listed = list(states)
    dead = listed.count(DEAD)
    return WorkerCounts(
        alive=len(listed) - dead,
        idle=listed.count("idle"),
        working=listed.count("working"),
        draining=listed.count("draining") + listed.count("halted"),
        dead=dead,
    )
