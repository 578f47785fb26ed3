"""`spool pause` and `spool resume`: start no more tasks, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.cli import completing, output
from spoold.cli.session import session

if TYPE_CHECKING:
    from spoold.client.spool import Spool

PAUSE_EPILOG = """Example: spool pause review --reason 'quota used up'

Example: spool pause"""
RESUME_EPILOG = """Example: spool resume review

Example: spool resume"""

Kind = Annotated[
    str | None,
    typer.Argument(metavar="TYPE", help="A type of tasks; without it, all.", autocompletion=completing.types),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; status, explain and the journal say it.")]


def register(app: typer.Typer) -> None:
    """Add both verbs."""
    app.command("pause", epilog=PAUSE_EPILOG)(pause)
    app.command("resume", epilog=RESUME_EPILOG)(resume)


def pause(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Start no more tasks.

    Of one type, or none at all; what runs goes on. It lasts until `spool resume`."""
    with session(ctx).spool() as spool:
        spool.pause(kind, reason=reason)
        _doubt(spool, kind)
    output.remark(f"{_tasks(kind)} will be held until `spool resume`")


def resume(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Take a pause or a halt back.

    Without a type, all pauses and a halt."""
    with session(ctx).spool() as spool:
        spool.resume(kind, reason=reason)
    output.remark(f"{_tasks(kind)} may start again")


def _doubt(spool: Spool, kind: str | None) -> None:
    """Say that nothing here is of the type: a pause may come before its tasks, or the name is a slip."""
    from spoold.client.selecting import list_types
    from spoold.protocol.request import kind_target
    from spoold.rules.selection import nearest

    if kind is None:
        return
    with spool.reaching():
        known = list_types(spool.store)
    if kind_target(kind) not in known:
        close = nearest(kind_target(kind), known)
        hint = f"; did you mean {close}? `spool resume {kind_target(kind)}` takes this back" if close else ""
        output.remark(f"nothing here is of type {kind_target(kind)} yet{hint}")


def _tasks(kind: str | None) -> str:
    """Which tasks a type means, as tasks themselves spell it."""
    from spoold.protocol.request import kind_target

    return "all tasks" if kind is None else f"tasks of type {kind_target(kind)}"
