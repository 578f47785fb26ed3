"""`spool pause` and `spool resume`: start no more tasks, for a while.

Law: a command line gives a pause one end at most. The remarks on unknown types and on other pauses come after the
request is posted, and change nothing.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli import completing, output
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from datetime import datetime

    from spoold.client.spool_client import SpoolClient

PAUSE_EPILOG = """Example: spool pause review --reason 'quota used up'

Example: spool pause review --for 2h"""
RESUME_EPILOG = """Example: spool resume review

Example: spool resume"""

Kind = Annotated[
    str | None,
    typer.Argument(metavar="TYPE", help="A type of tasks; without it, all types.", autocompletion=completing.types),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; status, explain and the journal say it.")]


For = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="End it by itself after so long: seconds, or 90s, 5m, 2h."),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="MOMENT", help="End it by itself at that moment, with its zone: 2026-01-31T18:00:00Z."
    ),
]


def register(app: typer.Typer) -> None:
    """Add both verbs."""
    app.command("pause", epilog=PAUSE_EPILOG)(pause)
    app.command("resume", epilog=RESUME_EPILOG)(resume)


def pause(ctx: typer.Context, kind: Kind = None, for_: For = None, until: Until = None, reason: Reason = "") -> None:
    """Start no more tasks.

    Of one type, or of any; running tasks go on. It lasts until `spool resume`, or until the moment of --for or
    --until. Of several pauses of one type, the one that lasts longest counts."""
    from spoold.faces.cli import values
    from spoold.protocol.errors import BadFile

    if for_ is not None and until is not None:
        raise BadFile("the command line", "", "has both --for and --until.", "a pause has one end: keep one of them.")
    moment = None if until is None else values.moment(until, "--until")
    for_s = None if for_ is None else values.duration(for_, "--for")
    with session(ctx).spool() as spool:
        end = spool.pause(kind, reason=reason, until=moment, for_s=for_s)
        _doubt(spool, kind)
        if end is not None:
            _longer(spool, kind, end)
    ends = "" if end is None else f"{end.isoformat().replace('+00:00', 'Z')} or "
    output.remark(f"{_tasks(kind)} will be held until {ends}`spool resume`")


def resume(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Take a pause or a halt back.

    Without a type, all pauses and a halt."""
    with session(ctx).spool() as spool:
        spool.resume(kind, reason=reason)
    output.remark(f"{_tasks(kind)} may start again")


def _longer(spool: SpoolClient, kind: str | None, end: datetime) -> None:
    """Report another pause that holds these tasks for longer than this one."""
    from spoold.client.spool.standing_requests import list_pauses
    from spoold.protocol.request import EVERYTHING, Verb, kind_target

    with spool.reaching():
        standing = list_pauses(spool.store)
    for pause in standing:
        lasts = pause.ends is None or pause.ends > end
        if pause.verb == Verb.PAUSE and pause.target in (kind_target(kind), EVERYTHING) and lasts:
            what = "everything" if pause.target == EVERYTHING else f"type {pause.target}"
            output.remark(f"another pause of {what} lasts until {pause.until or '`spool resume`'}: {pause.told}")


def _doubt(spool: SpoolClient, kind: str | None) -> None:
    """Say that nothing here is of the type: a pause may come before its tasks, or the name is a slip."""
    from spoold.client.read.selecting import list_types
    from spoold.protocol.errors import nearest
    from spoold.protocol.request import kind_target

    if kind is None:
        return
    with spool.reaching():
        known = list_types(spool.store)
    if kind_target(kind) not in known:
        close = nearest(kind_target(kind), known)
        hint = f"; did you mean {close}? `spool resume {kind_target(kind)}` takes this back" if close else ""
        output.remark(f"nothing here is of type {kind_target(kind)} yet{hint}")


def _tasks(kind: str | None) -> str:
    """Return the words for the tasks of a type."""
    from spoold.protocol.request import kind_target

    return "all tasks" if kind is None else f"tasks of type {kind_target(kind)}"
