"""get_status, and for operators drain and kill_all.

Law: an emergency stop asks no question, and only a person ends it, with `spool resume`. The names of the fields are
those that programs of this kind already read.

Touches: the clock.
"""

from __future__ import annotations

import time

import anyio
import anyio.to_thread
from pydantic import Field

from spoold.faces.mcp.arguments import Arguments, Reason, Wait, bounded_s
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Notify, Tool
from spoold.protocol.amount import amount
from spoold.protocol.snapshot import Snapshot

LOOK_EVERY_S = 0.5


class GetStatus(Arguments):
    """The arguments of get_status: none."""


class Drain(Arguments):
    """The arguments of drain."""

    worker: str = Field(default="", max_length=100, description="A worker, by id or name; all if left out.")
    timeout: Wait = 45_000
    reason: Reason = ""


class KillAll(Arguments):
    """The arguments of kill_all."""

    reason: Reason = ""


class Tasks(Answer):
    """How many tasks are in which state. pending: all that have not begun."""

    pending: int
    running: int
    completed: int
    failed: int


class Workers(Answer):
    """How many workers there are."""

    idle: int
    working: int
    draining: int
    dead: int


class Queue(Answer):
    """The tasks of one type."""

    waiting: int
    ready: int
    running: int


class PoolStatus(Answer):
    """The pool now."""

    orchestrator_running: bool = Field(description="A master leads: tasks are admitted and given out.")
    leader: str
    tasks: Tasks
    workers: Workers
    queues: dict[str, Queue] = Field(description="By the type of the tasks.")
    paused: list[str] = Field(description="Types that do not start now; +all for every type.")
    halted: bool
    warnings: list[str]


class Stopped(Answer):
    """What a stop has done."""

    status: str
    workers_killed: int
    message: str
    snapshot: PoolStatus


def status(session: Session, _: GetStatus) -> PoolStatus:
    """Return the pool now. Errors: Unavailable."""
    return seen(session.spool.picture())


def seen(picture: Snapshot) -> PoolStatus:
    """Return the leader's picture in the words of these tools."""
    tasks, workers = picture.tasks, picture.workers
    return PoolStatus(
        orchestrator_running=picture.master.leader is not None,
        leader=picture.master.leader or "",
        tasks=Tasks(
            pending=tasks.pending + tasks.waiting + tasks.ready,
            running=tasks.claimed,
            completed=tasks.completed + tasks.skipped,
            failed=tasks.failed + tasks.rejected,
        ),
        workers=Workers(idle=workers.idle, working=workers.working, draining=workers.draining, dead=workers.dead),
        queues={
            kind: Queue(
                waiting=counts.get("waiting", 0), ready=counts.get("ready", 0), running=counts.get("running", 0)
            )
            for kind, counts in picture.types.items()
        },
        paused=list(picture.paused),
        halted=picture.halted,
        warnings=list(picture.warnings),
    )


async def drain(session: Session, arguments: Drain, notify: Notify) -> Stopped:
    """Let workers finish and leave; wait until they have left. Errors: NotFound, SpoolError for a master."""
    before = await anyio.to_thread.run_sync(_alive, session)
    asked = await anyio.to_thread.run_sync(_drain, session, arguments)
    leaving = before & set(asked) if asked else before
    until = time.monotonic() + bounded_s(arguments.timeout)
    while True:
        here = await anyio.to_thread.run_sync(_alive, session)
        left = len(leaving - here)
        await notify(left, max(1, len(leaving)), f"{left} of {amount(len(leaving), 'worker')} left")
        if not leaving & here or time.monotonic() >= until:
            break
        await anyio.sleep(LOOK_EVERY_S)
    picture = await anyio.to_thread.run_sync(session.spool.picture)
    rest = len(leaving & here)
    said = f"{amount(rest, 'worker')} still {'runs' if rest == 1 else 'run'} a task; call get_status." if rest else ""
    return Stopped(
        status="draining" if rest else "drained",
        workers_killed=left,
        message=said
        or "all of them have finished and left. `spool drain --undo` takes back a drain of those that stay.",
        snapshot=seen(picture),
    )


def _drain(session: Session, arguments: Drain) -> list[str]:
    return session.spool.drain(arguments.worker or None, reason=arguments.reason or "an operator's drain")


def _alive(session: Session) -> set[str]:
    """The workers that still run something, or may."""
    return {node.worker for node in session.spool.picture().nodes if node.state != "dead"}


def kill_all(session: Session, arguments: KillAll) -> Stopped:
    """Stop everything at once. Errors: Unavailable."""
    before = session.spool.picture()
    session.spool.halt(reason=arguments.reason or "an operator's kill_all")
    return Stopped(
        status="stopped",
        workers_killed=before.workers.working,
        message="all running tasks are being killed and handed back at no charge, and nothing starts until a person "
        "says `spool resume`.",
        snapshot=seen(before),
    )


GET_STATUS = Tool(
    "get_status",
    "Get the status of the pool",
    "How many tasks wait, run and have ended in the whole pool, what the workers do, and whether a master leads.",
    GetStatus,
    PoolStatus,
    status,
    reads=True,
)
DRAIN = Tool(
    "drain",
    "Drain workers",
    "Let workers finish what they run and take nothing new. Waits at most 45 s for their end.",
    Drain,
    Stopped,
    drain,
    waits=True,
    destroys=True,
    repeats=True,
    operators_only=True,
)
KILL_ALL = Tool(
    "kill_all",
    "Stop everything now",
    "Kill all running tasks and start nothing more until a person says `spool resume`. No task is lost: those that "
    "were killed start again then.",
    KillAll,
    Stopped,
    kill_all,
    destroys=True,
    repeats=True,
    operators_only=True,
)
