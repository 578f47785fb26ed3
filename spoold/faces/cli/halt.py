"""`spool halt`: the emergency stop.

Law: an emergency stop asks no question, and it never ends by itself: only a resume of everything ends it.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import output
from spoold.faces.cli.session import session

EPILOG = """Example: spool halt --reason 'wrong credentials'

Example: spool resume"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("halt", epilog=EPILOG)(halt)


def halt(
    ctx: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the journal.")] = "",
) -> None:
    """Stop everything now.

    Running tasks are killed and handed back, and nothing starts until `spool resume`. No task is lost or charged for
    it; killed tasks start again after the resume.
    """
    with session(ctx).spool() as spool:
        spool.halt(reason=reason)
    output.remark("everything is being stopped; `spool resume` lets it go on")
