"""get_status, and for operators drain, kill_all, spawn_workers and scale_workers.

Law: an emergency stop asks no question, and only a person ends it, with `spool resume`. The names of the fields are
those that programs of this kind already read. Workers are started on the machine of this server alone, and leave by a
drain, so what they run ends by itself. Workers that others started are counted, and left alone: drain names those.

Touches: the clock.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import anyio
import anyio.to_thread
from pydantic import Field

from spoold.faces.mcp.local_workers import CREW_MOST, Hand
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import NUMBER, Answer, Arguments, Notify, Reason, Tool, Wait, bounded_s
from spoold.protocol.amount import amount
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.fields import Word
from spoold.protocol.names import own_name
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


# spawn_workers and scale_workers, for operators: workers on the machine of this server.


LOOK_AT_WORKERS_EVERY_S = 0.3
Kind = Annotated[Word, Field(description="Only for tasks of this type; for all that they can run if left out.")]
Slots = Annotated[int, Field(ge=1, le=64, description="How many tasks each of the new ones runs at once."), NUMBER]


class SpawnWorkers(Arguments):
    """The arguments of spawn_workers."""

    workers: Annotated[int, Field(ge=1, le=CREW_MOST, description="How many more."), NUMBER]
    task_type: Kind | None = None
    slots: Slots = 1
    timeout: Wait = 30_000


class ScaleWorkers(Arguments):
    """The arguments of scale_workers."""

    target: Annotated[
        int, Field(ge=0, le=CREW_MOST, description="How many workers of this server there are to be."), NUMBER
    ]
    task_type: Kind | None = None
    slots: Slots = 1
    timeout: Wait = 30_000


class Scaled(Answer):
    """What came of it."""

    status: str = Field(description="scaled; starting while a new worker has not reported yet, until a later call.")
    target: int = Field(description="How many workers of this server there are to be, of this type if one was named.")
    spawned: list[str] = Field(description="The new workers, by name.")
    draining: list[str] = Field(description="Those that finish what they run and then leave, by name.")
    workers: list[str] = Field(description="All that this server has started and that have not left, by name.")
    most: int = Field(description="How many this server may have at once.")
    pool: int = Field(description="How many workers live in the whole pool.")
    message: str


async def spawn(session: Session, arguments: SpawnWorkers, notify: Notify) -> Scaled:
    """Start more workers, and wait until they have reported. Errors: SpoolError, OSError."""

    def act() -> tuple[int, list[Hand]]:
        with session.crew.changing:
            new = session.crew.start(arguments.workers, arguments.task_type or "", arguments.slots)
            return len(_staying(session, arguments.task_type)), new

    return await _scaled(session, act, arguments.timeout, notify)


async def scale(session: Session, arguments: ScaleWorkers, notify: Notify) -> Scaled:
    """Bring the workers of this server to a number: start some, or drain some. Errors: SpoolError, OSError."""

    def act() -> tuple[int, list[Hand]]:
        with session.crew.changing:
            session.crew.require()
            staying, new = _staying(session, arguments.task_type), list[Hand]()
            if len(staying) > arguments.target:
                _drain_here(session, staying, len(staying) - arguments.target)
            elif len(staying) < arguments.target:
                back = _take_back(session, arguments.task_type, arguments.target - len(staying))
                missing = arguments.target - len(staying) - back
                new = session.crew.start(missing, arguments.task_type or "", arguments.slots) if missing else []
            return arguments.target, new

    return await _scaled(session, act, arguments.timeout, notify)


def _staying(session: Session, kind: str | None) -> list[Hand]:
    return [hand for hand in session.crew.living() if not hand.leaving and kind in (None, hand.kind)]


def _drain_here(session: Session, staying: list[Hand], count: int) -> None:
    """Let so many leave: first those that run nothing, and of these the youngest."""
    running = {own_name(node.worker): node.running for node in session.spool.roster().workers}
    order = sorted(enumerate(staying), key=lambda each: (running.get(each[1].name, 0), -each[0]))
    for _, hand in order[:count]:
        try:
            session.spool.drain(hand.name, reason="an operator's scale_workers")
        except NotFound:  # it has not reported yet, and runs nothing
            if hand.process.stdin is not None:
                hand.process.stdin.close()
        hand.leaving = True


def _take_back(session: Session, kind: str | None, count: int) -> int:
    """Let so many of those that drain stay; return how many do."""
    back = 0
    for hand in [hand for hand in session.crew.living() if hand.leaving and kind in (None, hand.kind)][:count]:
        if hand.process.stdin is None or hand.process.stdin.closed:
            continue
        try:
            session.spool.undrain(hand.name, reason="an operator's scale_workers")
        except NotFound:
            continue  # it has left
        hand.leaving = False
        back += 1
    return back


async def _scaled(session: Session, act: Any, within: int, notify: Notify) -> Scaled:
    target, new = await anyio.to_thread.run_sync(act)
    until = time.monotonic() + bounded_s(within)
    while True:
        alive = await anyio.to_thread.run_sync(_alive_here, session)
        came = sum(hand.name in alive for hand in new)
        await notify(came, max(1, len(new)), f"{came} of {amount(len(new), 'worker')} reported")
        if ended := [hand for hand in new if hand.process.poll() is not None]:
            raise SpoolError(
                f"{amount(len(ended), 'worker')} of {len(new)} ended at once, with status "
                f"{ended[0].process.returncode}. Fix: the server's stderr says why; often it is --worker-config."
            )
        if came == len(new) or time.monotonic() >= until:
            break
        await anyio.sleep(LOOK_AT_WORKERS_EVERY_S)
    living = session.crew.living()
    draining = [hand.name for hand in living if hand.leaving]
    late = len(new) - came
    said = [f"{amount(late, 'worker')} did not report yet; call get_status."] if late else []
    said += ["those that drain leave when what they run has ended."] if draining else []
    return Scaled(
        status="starting" if late else "scaled",
        target=target,
        spawned=[hand.name for hand in new],
        draining=draining,
        workers=[hand.name for hand in living],
        most=session.crew.most,
        pool=len(alive),
        message=" ".join(said) or "submit_tasks or delegate_task gives them something to do.",
    )


def _alive_here(session: Session) -> set[str]:
    """The workers that live, by the name with which each was started."""
    return {own_name(node.worker) for node in session.spool.roster().workers if node.state != "dead"}


SPAWN_WORKERS = Tool(
    "spawn_workers",
    "Start workers on this machine",
    "Start more workers on the machine of this server, as many as the person who started it allows. They leave when "
    "the server ends, after what they run. A worker on another machine is started there, by a person.",
    SpawnWorkers,
    Scaled,
    spawn,
    waits=True,
    operators_only=True,
)
SCALE_WORKERS = Tool(
    "scale_workers",
    "Set the number of this server's workers",
    "Bring the workers that this server started to a number: start some, or drain some, which finish what they run. "
    "It never kills a task, and leaves the workers of others alone: drain names those.",
    ScaleWorkers,
    Scaled,
    scale,
    waits=True,
    repeats=True,
    operators_only=True,
)
