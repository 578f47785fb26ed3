"""What a node says of itself every few seconds. A new beat is a new file; nobody compares its clock with ours."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class HostId(BaseModel):
    """Where a process lives: two heartbeats with the same values come from the same process table."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    hostname: str
    machine_id: str = ""
    boot_id: str = ""
    pid_namespace: str = ""


class MountFacts(BaseModel):
    """How a node has mounted the spool, as far as that matters: the kernel's name of the file system, the protocol's
    version, the options that change what is safe, and whether other machines serve it.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    fstype: str
    version: str = ""
    options: tuple[str, ...] = ()
    network: bool = False


class Running(BaseModel):
    """One task that a worker runs: since when (RFC 3339), how much memory (MiB), what it reports of itself."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    id: str
    attempt: int
    type: str
    since: str
    mem_mb: float = 0
    progress: Any = None


class Capabilities(BaseModel):
    """What a worker can serve. handlers are the types it has handlers for; types empty = any type."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    cpus: float
    mem_mb: int
    gpus: int = 0
    labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    allow_command: bool = False
    python: tuple[str, ...] = ()


class Heartbeat(BaseModel):
    """One beat of one node. mem_available_mb and disk_free_mb in MiB, load as the one-minute average."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    node: str
    role: Literal["worker", "master"]
    beat: int
    at: str
    host: HostId
    pid: int
    process_start: float
    version: str
    status: Literal["idle", "working", "draining", "halted", "asleep", "leader", "standby"]
    slots: int = 0
    running: tuple[Running, ...] = ()
    capabilities: Capabilities | None = None
    load: float = 0
    mem_available_mb: int = 0
    disk_free_mb: int = 0
    interval_s: float = 5
    notes: tuple[str, ...] = ()
    mount: MountFacts | None = None
