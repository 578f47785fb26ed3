"""reserve_files and release_files: nothing that conflicts with a reservation begins meanwhile.

Law: a caller gives back its own reservations and no others. A reservation that was not granted in time is given back.

Touches: the clock.
"""

from __future__ import annotations

import time
from typing import Annotated

import anyio.from_thread
import anyio.to_thread
from pydantic import Field

from spoold.client.spool.standing_requests import Reservation, Reserving
from spoold.faces.mcp.arguments import IDS_MOST, LISTED, NUMBER, Arguments, Patterns, Reason, Wait, bounded_s, seconds
from spoold.faces.mcp.roles import Role
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Notify, Tool
from spoold.protocol.errors import NotFound, WaitTimeout

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
