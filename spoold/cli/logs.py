"""`spool logs`: what a task wrote."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output
from spoold.cli.session import session

EPILOG = """Example: spool logs review-3f9a -f

Example: spool logs review-3f9a --attempt 1"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("logs", epilog=EPILOG)(logs)


def logs(
    ctx: typer.Context,
    task_id: output.TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="Of this attempt; else of the last one.")
    ] = None,
) -> None:
    """Print what a task wrote to stdout and stderr."""
    with session(ctx).spool() as spool:
        for piece in spool.logs(task_id, follow=follow, attempt=attempt):
            output.write_bytes(piece)
