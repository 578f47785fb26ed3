"""The leader's snapshot of the cluster, which `spool status --json` prints.

Law: a picture for people and programs; no node decides anything by it. Readers accept fields that they do not know.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from spoold.protocol.result import Total


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)


class Leadership(_Part):
    """Who leads (None: no node), in which epoch, and the standbys."""

    leader: str | None = None
    epoch: int = 0
    standbys: tuple[str, ...] = ()


class TaskCounts(_Part):
    """How many tasks are in which state; returned ones count as waiting, archived ones under their last state."""

    pending: int = 0
    waiting: int = 0
    ready: int = 0
    claimed: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    rejected: int = 0


class WorkerCounts(_Part):
    """alive = idle + working + draining; asleep: its machine announced its sleep; dead: not yet reaped."""

    alive: int = 0
    idle: int = 0
    working: int = 0
    draining: int = 0
    asleep: int = 0
    dead: int = 0


class Node(_Part):
    """One worker. Memory in MiB, load as the one-minute average.

    since: when (RFC 3339) it fell asleep, '' if it is awake; notes: remarks for people. endings, spent: as in its
    beat; the next leader goes on counting from there.
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
    endings: dict[str, int] = {}
    spent: Total | None = None


class Rates(_Part):
    """Ended tasks per minute, over the last five minutes, under any leaders; 0 if none has ended for two minutes.

    eta_s: until all remaining tasks are done at that rate, None if unknown; eta_unknown: the reason, in words.
    """

    completed_per_min: float = 0
    failed_per_min: float = 0
    eta_s: float | None = None
    eta_unknown: str = ""


class Recent(_Part):
    """Failures within the last over_s seconds: attempts that failed or were lost, by error code, and rejected drops,
    by problem; the most frequent first."""

    over_s: float = 600
    failed_attempts: dict[str, int] = {}
    rejections: dict[str, int] = {}


class Minute(_Part):
    """What ended within one minute. at: when it began (RFC 3339, by the pool's time); attempts: that failed or asked
    for another try, by error code; rejected: drops, and drops: the same by problem, for the last ten minutes;
    tokens_used, cost_usd (USD): of the attempts that workers committed.
    """

    at: str
    completed: int = 0
    failed: int = 0
    rejected: int = 0
    attempts: dict[str, int] = {}
    drops: dict[str, int] = {}
    tokens_used: float = 0
    cost_usd: float = 0


class History(_Part):
    """The last hour, under any leaders. since, until: when (RFC 3339, by the pool's time) the count began, and was
    taken; minutes: those in which something ended, the oldest first.
    """

    since: str = ""
    until: str = ""
    minutes: tuple[Minute, ...] = ()


class Durations(_Part):
    """How long (s) the last successful attempts of a type took: n of them, at most 100."""

    n: int = 0
    mean_s: float = 0
    p95_s: float = 0


class Alert(_Part):
    """One alert that stands. since: when it rose (RFC 3339); subject: what it is about, '' for the whole spool.

    value and threshold: figures in the unit of the setting; text: a sentence; task: the id of the task that tells of
    it, '' where there is none.
    """

    name: str
    subject: str = ""
    since: str = ""
    value: float = 0
    threshold: float = 0
    text: str = ""
    task: str = ""


def no_tasks() -> dict[str, int]:
    """The counts of one type in `types`: active is ready and running together, which limits cap."""
    return {"waiting": 0, "ready": 0, "running": 0, "active": 0}


class Snapshot(_Part):
    """The whole snapshot. source is `leader`, or `listing` while no node leads.

    settings: the revision of the settings that the leader goes by, '' for spool.toml alone.
    gates: by gate, what it counts: see `docs/spec/gates.md`.
    spent: what the attempts that the present workers committed came to, since each of them started.
    """

    generated_at: str
    spool_id: str
    source: str = "leader"
    master: Leadership = Leadership()
    tasks: TaskCounts = TaskCounts()
    workers: WorkerCounts = WorkerCounts()
    nodes: tuple[Node, ...] = ()
    rates: Rates = Rates()
    recent: Recent = Recent()
    history: History = History()
    spent: Total | None = None
    types: dict[str, dict[str, int]] = {}
    durations: dict[str, Durations] = {}
    gates: dict[str, dict[str, Any]] = {}
    paused: tuple[str, ...] = ()
    halted: bool = False
    settings: str = ""
    alerts: tuple[Alert, ...] = ()
    warnings: tuple[str, ...] = ()
