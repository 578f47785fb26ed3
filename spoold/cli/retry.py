"""`spool retry`: failed tasks, once more."""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.cli import output
from spoold.cli.session import session

EPILOG = """Example: spool retry review-3f9a

Example: spool ls --state failed -q | xargs spool retry"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("retry", epilog=EPILOG)(retry)


def retry(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Failed tasks, by their whole ids.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it goes into the journal.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """Try failed tasks again.

    They get a fresh budget of retries."""
    with session(ctx).spool() as spool:
        asked = spool.retry(ids, reason=reason)
    if as_json:
        output.print_json({"retry": asked})
    else:
        for task_id in asked:
            output.print_line(task_id)
