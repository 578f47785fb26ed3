"""`spool pause` and `spool resume`: start no more tasks, for a while."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output
from spoold.cli.session import session

PAUSE_EPILOG = """Example: spool pause review --reason 'quota used up'

Example: spool pause"""
RESUME_EPILOG = """Example: spool resume review

Example: spool resume"""

Kind = Annotated[str | None, typer.Argument(metavar="TYPE", help="A type of tasks; without it, all.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")]


def register(app: typer.Typer) -> None:
    """Add both verbs."""
    app.command("pause", epilog=PAUSE_EPILOG)(pause)
    app.command("resume", epilog=RESUME_EPILOG)(resume)


def pause(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Start no more tasks.

    Of one type, or none at all; what runs goes on."""
    with session(ctx).spool() as spool:
        spool.pause(kind, reason=reason)
    output.remark(f"{_tasks(kind)} will be held until `spool resume`")


def resume(ctx: typer.Context, kind: Kind = None, reason: Reason = "") -> None:
    """Take a pause or a halt back.

    Without a type, all pauses and a halt."""
    with session(ctx).spool() as spool:
        spool.resume(kind, reason=reason)
    output.remark(f"{_tasks(kind)} may start again")


def _tasks(kind: str | None) -> str:
    """Which tasks a type means, as tasks themselves spell it."""
    from spoold.protocol.request import kind_target

    return "all tasks" if kind is None else f"tasks of type {kind_target(kind)}"
