"""`spool cancel`: end tasks, running or not."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output
from spoold.cli.session import session

EPILOG = """Example: spool cancel review-3f9a

Example: spool ls --state waiting -q | xargs spool cancel --reason 'wrong input'"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("cancel", epilog=EPILOG)(cancel)


def cancel(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="The tasks to end, by their whole ids.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept with the task.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """End tasks, running or not.

    Those that wait never start, those that run are stopped."""
    with session(ctx).spool() as spool:
        asked = spool.cancel(ids, reason=reason)
    if as_json:
        output.print_json({"cancel": asked})
    else:
        for task_id in asked:
            output.print_line(task_id)
