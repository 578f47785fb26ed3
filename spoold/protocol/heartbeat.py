"""A node's report of itself, every few seconds. A new beat is a new file; no node compares its clock with ours.

Law: that a node lives is said by the name of its beat alone. So every field is optional, and an unreadable one hides
no node: `codec.load_beat` skips it, and says so in the node's notes. Numbers outside the range of an honest machine
are refused, since an absurd figure must be neither shown nor used in sums.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from spoold.protocol.amount import MOST, is_amount
from spoold.protocol.errors import WrongValue
from spoold.protocol.result import Total

# Why a type is lacking whose handler's check runs for the first time.
UNCHECKED = "its check is not over yet"
# An amount of a machine, in any unit; room on a share, which some servers report as 2^63 bytes; a process id of
# Linux; the range in which a clock can be set, either way. Counts over years have the range of all amounts.
AMOUNT_MAX, ROOM_MAX_MB, PID_MAX, CLOCK_MAX_S = 10**9, 10**15, (1 << 31) - 1, 10**11


def _possible(total: Any) -> Any:
    """Refuse a sum that attempts cannot reach, which `Total` would cut: any record must stay readable."""
    for name in Total.model_fields if isinstance(total, dict) else ():
        value = total.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and not is_amount(value):
            raise WrongValue(f"{name}: {value:g} is no amount", f"write 0 to {MOST:,}")
    return total


Whole = Annotated[int, Field(ge=0, le=AMOUNT_MAX)]
Real = Annotated[float, Field(ge=0, le=AMOUNT_MAX)]
RoomMb = Annotated[int, Field(ge=0, le=ROOM_MAX_MB)]
Pid = Annotated[int, Field(ge=0, le=PID_MAX)]
Times = Annotated[int, Field(ge=0, le=MOST)]
ClockS = Annotated[float, Field(ge=-CLOCK_MAX_S, le=CLOCK_MAX_S)]
Spent = Annotated[Total, BeforeValidator(_possible)]


class HostId(BaseModel):
    """Where a process lives: two heartbeats with the same values come from the same process table."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    hostname: str = ""
    machine_id: str = ""
    boot_id: str = ""
    pid_namespace: str = ""
    time_namespace: str = ""


class MountFacts(BaseModel):
    """How a node has mounted the spool: the kernel's name of the file system, the protocol's version, the
    options that affect safety, and whether another machine serves it.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    fstype: str
    version: str = ""
    options: tuple[str, ...] = ()
    network: bool = False


class Running(BaseModel):
    """One task that a worker runs: since when (RFC 3339), how much memory (MiB), its own report, how long (s) it
    was frozen without a lease, whether it waits for other tasks, with its slot lent, whether it wants back
    what it lent, and whether it says that the limits it uses serve it. progress_problem: why its report
    does not count, "" if it does. type: as which it runs; instead_of: the task's own type, where that is another one.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    id: str
    attempt: Whole = 0
    type: str = ""
    since: str = ""
    mem_mb: Real = 0
    progress: Any = None
    progress_problem: str = ""
    frozen_s: Real = 0
    lent: bool = False
    back: bool = False
    served: bool = False
    instead_of: str = ""


class Lasted(BaseModel):
    """How long (s) a worker's last successful attempts of one type took; n: how many there were since it started."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    n: Times = 0
    last: tuple[Real, ...] = ()


class Capabilities(BaseModel):
    """The tasks that a worker can run. handlers are the types it has handlers for; types empty = any type.

    lacks: handlers whose program or module is not on its machine, by type, with the reason. shuns: types whose last
    task it could not run, and that it leaves to others for a while, by type, with the reason; also modules
    (`py=MODULE`, as in a lane's name). about: what the owner of the machine says of a handler, by type. instead: by
    type, the types as which its tasks may run while a limit of it is closed, in order, for
    `rules.scheduling.fallback_types`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    cpus: Real = 0
    mem_mb: Whole = 0
    gpus: Whole = 0
    labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    allow_command: bool = False
    python: tuple[str, ...] = ()
    lacks: dict[str, str] = {}
    shuns: dict[str, str] = {}
    about: dict[str, dict[str, str]] = {}
    instead: dict[str, tuple[str, ...]] = {}


class Keeps(BaseModel):
    """The task that a worker keeps room for, since it has too little free for it yet, and how much of what that task
    needs later tasks may take meanwhile: `cpus`, `mem_mb`, `gpus`, `slot`, or units of the worker's own limits.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    task: str = ""
    spare: dict[str, Real] = {}


class Heartbeat(BaseModel):
    """One beat of one node. role is worker or master; status idle, working, draining, halted, asleep, leader or
    standby, or a word of a later release. mem_available_mb (None: unknown) and disk_free_mb in MiB, load as the
    one-minute average.

    avoids: tasks that it leaves to other workers for a while, each with the reason; only the latest of them.
    outlived: attempts (ID.ATTEMPT, the id in lower case) that its process ran when it was taken for dead; only the
    latest. clock_ahead_s: how far its machine's clock is ahead of the file server's. settings: the revision that it
    goes by, '' for spool.toml alone. keeps: the task that it keeps room for. left: what programs of its handlers left
    on its machine for people to see to. started: when the node began (RFC 3339).
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    node: str
    role: str = "worker"
    beat: int
    at: str = ""
    host: HostId = HostId()
    pid: Pid = 0
    process_start: float = 0
    version: str = ""
    status: str = ""
    slots: Whole = 0
    running: tuple[Running, ...] = ()
    capabilities: Capabilities | None = None
    load: Real = 0
    mem_available_mb: Whole | None = None
    disk_free_mb: RoomMb = 0
    interval_s: Real = 5
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    clock_ahead_s: ClockS | None = None
    avoids: dict[str, str] = {}
    keeps: Keeps | None = None
    endings: dict[str, Times] = {}
    spent: Spent | None = None
    durations: dict[str, Lasted] = {}
    mount: MountFacts | None = None
    settings: str = ""
    outlived: tuple[str, ...] = ()
    started: str = ""
