"""The leader's picture of the cluster, and what `spool status --json` prints."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class Leadership(_Part):
    """Who leads (None: nobody), in which epoch, who would take over."""

    leader: str | None = None
    epoch: int = 0
    standbys: tuple[str, ...] = ()


class TaskCounts(_Part):
    """How many tasks are in which state; returned ones count as waiting, archived ones as what they ended as."""

    pending: int = 0
    waiting: int = 0
    ready: int = 0
    claimed: int = 0
    completed: int = 0
    failed: int = 0
    rejected: int = 0


class WorkerCounts(_Part):
    """alive = idle + working + draining; asleep: its machine told so before it slept; dead: not yet reaped."""

    alive: int = 0
    idle: int = 0
    working: int = 0
    draining: int = 0
    asleep: int = 0
    dead: int = 0


class Node(_Part):
    """One worker. Memory in MiB, load as the one-minute average.

    since: when (RFC 3339) it fell asleep, '' for one that has not; notes: what people should know.
    """

    worker: str
    host: str
    state: str
    slots: int
    running: int
    cpus: float
    mem_mb: int
    mem_available_mb: int
    load: float
    labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tasks: tuple[Any, ...] = ()
    since: str = ""
    notes: tuple[str, ...] = ()


class Rates(_Part):
    """Ended tasks per minute, over the last five minutes; eta_s until the backlog is done at that rate."""

    completed_per_min: float = 0
    failed_per_min: float = 0
    eta_s: float | None = None


class Snapshot(_Part):
    """The whole picture. source is `leader`, or `listing` where nobody leads."""

    generated_at: str
    spool_id: str
    source: str = "leader"
    master: Leadership = Leadership()
    tasks: TaskCounts = TaskCounts()
    workers: WorkerCounts = WorkerCounts()
    nodes: tuple[Node, ...] = ()
    rates: Rates = Rates()
    types: dict[str, dict[str, int]] = {}
    paused: tuple[str, ...] = ()
    halted: bool = False
    warnings: tuple[str, ...] = ()
