"""`spool timeline`: when which attempt ran where, as a picture or for Perfetto.

Law: the picture is made by `spoold.pictures`; nothing is drawn here.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, saving
from spoold.faces.cli.session import session

EPILOG = """Example: spool timeline nightly -o nightly.svg

Example: spool timeline --all --perfetto -o trace.json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("timeline", epilog=EPILOG)(timeline)


def timeline(
    ctx: typer.Context,
    batch: Annotated[
        str | None,
        typer.Argument(
            metavar="[BATCH]",
            help="A batch, as `submit` named it, with its archived tasks; else all tasks.",
            autocompletion=completing.batches,
            show_default=False,
        ),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="As SVG. This is the default.")] = False,
    perfetto: Annotated[
        bool, typer.Option("--perfetto", help="As trace events in JSON, for ui.perfetto.dev or chrome://tracing.")
    ] = False,
    archived: Annotated[bool, typer.Option("--all", help="Without a batch: also the tasks in the archive.")] = False,
    file: saving.OutputOption = None,
) -> None:
    """Draw the attempts over time, a lane for each slot of each worker.

    Long idle gaps are folded. Times are those of the workers' own clocks, in UTC.
    """
    from spoold.protocol.errors import BadFile

    if svg and perfetto:
        raise BadFile("the command line", "", "names several formats.", "give one of --svg and --perfetto.")
    with session(ctx).spool() as spool:
        scene = spool.scene(batch, archived=archived or batch is not None)
    if perfetto:
        from spoold.pictures.perfetto import write
    else:
        from spoold.pictures.timeline_svg import draw as write
    saving.save(write(scene), file)
