"""What running tasks tell each other: reserve_files, release_files, report_progress, get_context and put_context.

Law: a caller gives back its own reservations and no others. A reservation that was not granted in time is given back.
A report never takes an earlier figure back that it does not name: what was spent stays counted. Its file is on this
machine, and is replaced as a whole, so that its worker never reads half of one. An agent within a task has the
context of its own batch alone; outside of one, that of batches of tasks that it reaches. Nothing of it is ever
overwritten, and a conflict is said.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import json
import os
import time
from typing import Annotated, Any

import anyio.from_thread
import anyio.to_thread
from pydantic import Field

from spoold.client.context_and_steps import Conflict, Shared, SharedContext
from spoold.client.read.task_info import read_content, text_in
from spoold.client.spool.standing_requests import Reservation, Reserving
from spoold.faces.mcp.session import Role, Session
from spoold.faces.mcp.tool import (
    IDS_MOST,
    LISTED,
    NUMBER,
    Answer,
    Arguments,
    Fraction,
    Notify,
    Patterns,
    Reason,
    Tool,
    Wait,
    bounded_s,
    seconds,
)
from spoold.protocol.context_entry import BYTES_MAX, NAME_MAX
from spoold.protocol.errors import NotFound, SpoolError, WaitTimeout
from spoold.protocol.names import key

TTL_MOST_MS = 7 * 86_400_000


class ReserveFiles(Arguments):
    """The arguments of reserve_files."""

    patterns: Patterns
    read: bool = Field(default=False, description="Only to read: others may read it, too.")
    ttl: (
        Annotated[int, Field(ge=1, le=TTL_MOST_MS, description="It ends by itself after so many ms."), NUMBER] | None
    ) = None
    timeout: Wait = Field(default=0)
    reason: Reason = ""


class ReleaseFiles(Arguments):
    """The arguments of release_files."""

    reservations: Annotated[tuple[str, ...], Field(max_length=IDS_MOST), LISTED] = Field(
        default=(), description="Names that reserve_files returned; all of yours if left out."
    )


class Reserved(Answer):
    """A reservation, or who is in the way."""

    reservation: str = Field(description="Its name, for release_files; '' where it was not granted.")
    granted: bool
    until: str = Field(description="When it ends by itself (RFC 3339).")
    behind: str = Field(description="Who holds some of it.")
    message: str


class Released(Answer):
    """The reservations that were given back."""

    released: list[str]


async def reserve(session: Session, arguments: ReserveFiles, notify: Notify) -> Reserved:
    """Reserve patterns. Errors: SpoolError for a pattern or a time that is none."""
    await notify(0, 1, f"reserving {' '.join(arguments.patterns)[:200]}")
    try:
        found = await anyio.to_thread.run_sync(_reserve, session, arguments)
    except WaitTimeout as error:
        return Reserved(reservation="", granted=False, until="", behind="", message=f"{error} It was given back.")
    if not found.granted:
        # A holder that begins with + is a reservation, any other a task.
        who = f"reservation {found.behind[1:]}" if found.behind.startswith("+") else f"task {found.behind}"
        said = f"not free: {who} holds some of it. Try again, or give a timeout."
        return Reserved(reservation="", granted=False, until="", behind=found.behind, message=said)
    session.reserved.add(found.name)
    said = f"reserved until {found.until}, or until release_files."
    return Reserved(reservation=found.name, granted=True, until=found.until, behind="", message=said)


def _reserve(session: Session, arguments: ReserveFiles) -> Reservation:
    patterns = arguments.patterns
    wait_s = bounded_s(arguments.timeout)
    return Reserving(session.spool).reserve(
        () if arguments.read else patterns,
        read=patterns if arguments.read else (),
        ttl_s=None if arguments.ttl is None else seconds(arguments.ttl),
        wait=wait_s > 0,
        timeout=wait_s or bounded_s(TTL_MOST_MS),
        reason=arguments.reason,
        sleep=_nap,
    )


def _nap(duration_s: float) -> None:
    """Sleep in the thread of a call; the end of a call that was cancelled. A reservation is given back then."""
    anyio.from_thread.check_cancelled()
    time.sleep(duration_s)


def release(session: Session, arguments: ReleaseFiles) -> Released:
    """Give reservations back. Errors: NotFound for one that is not the caller's, and then none is given back."""
    reserving = Reserving(session.spool)
    standing = session.spool.reserved()
    mine = session.reserved & standing
    if session.own is not None:
        mine |= set(reserving.own())
    elif session.role is Role.OPERATOR and arguments.reservations:
        mine = set(standing)
    missing = [name for name in arguments.reservations if name not in mine]
    if missing:
        raise NotFound(
            f"no reservation {missing[0]!r} of yours. Fix: leave reservations out, to give all of yours back."
        )
    wanted = list(arguments.reservations) or sorted(mine)
    released = reserving.release(wanted) if wanted else []
    session.reserved.difference_update(released)
    return Released(released=released)


RESERVE_FILES = Tool(
    "reserve_files",
    "Reserve files",
    "Keep tasks away from files that you work on: nothing that locks the same begins from now on. Granted once "
    "nothing that conflicts runs. Without a timeout it answers at once, and says who is in the way.",
    ReserveFiles,
    Reserved,
    reserve,
    waits=True,
)
RELEASE_FILES = Tool(
    "release_files",
    "Release files",
    "Give your reservations back: those that are named, or all of yours.",
    ReleaseFiles,
    Released,
    release,
    repeats=True,
)


# report_progress: what the caller's own task has done so far.


AMOUNT_MOST = 10**12


class ReportProgress(Arguments):
    """The arguments of report_progress."""

    message: str = Field(default="", max_length=2000, description="What you do now, in a sentence.")
    progress: Fraction | None = Field(default=None, description="How much is done, from 0 to 1.")
    tokensUsed: (
        Annotated[int, Field(ge=0, le=AMOUNT_MOST, description="Tokens used so far, in all."), NUMBER] | None
    ) = None
    costUsd: Annotated[float, Field(ge=0, le=AMOUNT_MOST, description="USD spent so far, in all."), NUMBER] | None = (
        None
    )


class Reported(Answer):
    """What stands in the report now."""

    taskId: str
    report: dict[str, Any]


def report(session: Session, arguments: ReportProgress) -> Reported:
    """Write the progress of the caller's own task. Errors: SpoolError outside of a task."""
    path, own = session.progress_file, session.own
    if own is None or not path:
        raise SpoolError(
            "this server does not run within a task, so there is no task whose progress this would be. "
            "Fix: leave it out; report_progress is for an agent that a worker of the pool started."
        )
    said = {
        "message": arguments.message or None,
        "progress": arguments.progress,
        "tokens_used": arguments.tokensUsed,
        "cost_usd": arguments.costUsd,
    }
    session.reported.update({name: value for name, value in said.items() if value is not None})
    draft = f"{path}.mcp-{os.getpid()}"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(session.reported, file, ensure_ascii=False)
    os.replace(draft, path)
    return Reported(taskId=own, report=dict(session.reported))


REPORT_PROGRESS = Tool(
    "report_progress",
    "Report your progress",
    "Say how far your own task is. People see it in the status; with a stall timeout, silence ends a task; tokens "
    "and cost are held against its budget.",
    ReportProgress,
    Reported,
    report,
    repeats=True,
)


# get_context and put_context: what the tasks of a batch share.


Name = Annotated[str, Field(max_length=NAME_MAX, description="The name of an entry, such as decisions.md.")]
Batch = Annotated[str, Field(max_length=120, description="Which batch; within a task that of the task.")]
Version = Annotated[int, Field(ge=0, le=10**9), NUMBER]


class GetContext(Arguments):
    """The arguments of get_context."""

    entry: Name = ""
    version: Version = Field(default=0, description="An earlier version; 0 for the one that counts.")
    batch: Batch = ""


class PutContext(Arguments):
    """The arguments of put_context."""

    entry: Annotated[Name, Field(min_length=1)]
    content: str = Field(max_length=BYTES_MAX, description="The whole content of the new version.")
    ifVersion: Version | None = Field(
        default=None, description="Put only if this is the version that counts now; 0 if there is to be none yet."
    )
    batch: Batch = ""


class ContextEntry(Answer):
    """One entry. conflicts: versions that its author had not seen."""

    name: str
    version: int
    task: str
    by: str
    at: str
    conflicts: list[int]


class Found(Answer):
    """The content of one entry, or the names of all."""

    batch: str
    entries: list[ContextEntry]
    content: str


class Put(Answer):
    """What a put has made of it. conflict: why not, or what else stands; '' for none."""

    batch: str
    entry: str
    version: int = Field(description="The version that was put; 0 where nothing was.")
    conflict: str


def get(session: Session, arguments: GetContext) -> Found:
    """Return an entry, or all that count. Errors: NotFound, SpoolError."""
    shared = _context(session, arguments.batch)
    if not arguments.entry:
        return Found(batch=shared.batch, entries=[_entry(each) for each in shared.current()], content="")
    found, data = shared.get(arguments.entry, arguments.version or None)
    return Found(batch=shared.batch, entries=[_entry(found)], content=data.decode(errors="replace"))


def put(session: Session, arguments: PutContext) -> Put:
    """Add a version of an entry. Errors: NotFound, SpoolError."""
    shared = _context(session, arguments.batch)
    try:
        found = shared.put(
            arguments.entry, arguments.content.encode(errors="replace"), if_version=arguments.ifVersion
        )
    except Conflict as conflict:
        return Put(batch=shared.batch, entry=arguments.entry, version=conflict.version, conflict=str(conflict))
    others = ", ".join(map(str, found.conflicts))
    said = f"version {others} was put at the same moment: get it, merge, and put again" if others else ""
    return Put(batch=shared.batch, entry=found.name, version=found.version, conflict=said)


def _entry(found: Shared) -> ContextEntry:
    return ContextEntry(
        name=found.name,
        version=found.version,
        task=found.task,
        by=found.by,
        at=found.at,
        conflicts=list(found.conflicts),
    )


def _context(session: Session, batch: str) -> SharedContext:
    """Return the context of a batch that the caller reaches. Errors: NotFound, SpoolError."""
    if session.own is not None:
        own = SharedContext(session.spool)
        if batch and key(batch) != key(own.batch):
            raise NotFound(f"batch {batch!r} is not that of your task. Fix: leave batch out.")
        return own
    shared = SharedContext(session.spool, batch)
    if session.role is not Role.OPERATOR and not _reaches(session, key(batch)):
        raise NotFound(f"none of your tasks is of batch {batch!r}. Fix: submit_tasks with this batch first.")
    return shared


def _reaches(session: Session, batch: str) -> bool:
    store = session.spool.store
    return any(key(text_in(read_content(store, each), "batch")) == batch for each in session.reach.mine())


GET_CONTEXT = Tool(
    "get_context",
    "Get shared context",
    "What the tasks of your batch share: decisions, findings, interfaces. Without an entry it lists the entries.",
    GetContext,
    Found,
    get,
    reads=True,
)
PUT_CONTEXT = Tool(
    "put_context",
    "Put shared context",
    "Share an entry with the other tasks of your batch. It never replaces one: it adds a version, and the latest "
    "counts. With ifVersion it says so when somebody else was faster; then get it, merge, and put again.",
    PutContext,
    Put,
    put,
)
