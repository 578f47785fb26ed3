"""`spool report`: all of a batch in one file that can be sent to somebody.

Law: the file is made by `spoold.pictures`; nothing is drawn here.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, saving
from spoold.faces.cli.session import session

EPILOG = """Example: spool report nightly --html nightly.html"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report", epilog=EPILOG)(report)


def report(
    ctx: typer.Context,
    batch: Annotated[
        str,
        typer.Argument(metavar="BATCH", help="A batch, as `submit` named it.", autocompletion=completing.batches),
    ],
    html: Annotated[str, typer.Option("--html", metavar="FILE", help="Write the report here; - for stdout.")],
) -> None:
    """Write a report of a batch: one HTML file, which needs no network.

    It has the numbers of `spool status --batch`, failures with the ends of their logs, the timeline, the graph, the
    slowest tasks, and tokens and cost by model and by task. Anyone who has the file can read these logs.
    """
    with session(ctx).spool() as spool:
        from spoold.pictures.report_html import TOP, write

        text = write(spool.scene(batch, tails=TOP))
    saving.save(text, html, "--html")
