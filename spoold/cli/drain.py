"""`spool drain`: let workers finish and leave."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output
from spoold.cli.session import session

EPILOG = """Example: spool drain laptop2

Example: spool drain --all --undo"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("drain", epilog=EPILOG)(drain)


def drain(
    ctx: typer.Context,
    worker: Annotated[
        str | None, typer.Argument(metavar="WORKER", help="Its id, or the name that it was started with.")
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All workers.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take a drain back.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")] = "",
) -> None:
    """Have a worker finish and leave.

    It takes nothing new; what it runs may end."""
    from spoold.protocol.errors import BadFile

    if (worker is None) != everyone:
        raise BadFile("the command line", "", "must name one WORKER or --all.", "`spool workers` shows the workers.")
    with session(ctx).spool() as spool:
        ask = spool.undrain if undo else spool.drain
        asked = ask(worker, reason=reason)
    what = "may work again" if undo else "will drain"
    output.remark(f"{', '.join(asked) if asked else 'all workers'} {what}")
