"""`spool graph`: what the tasks of a batch wait for, as a picture.

Law: the picture is made by `spoold.pictures`; nothing is drawn here.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, saving
from spoold.faces.cli.session import session

EPILOG = """Example: spool graph nightly -o nightly.svg

Example: spool graph nightly --dot | dot -Tpng -o nightly.png"""

BatchArgument = Annotated[
    str,
    typer.Argument(metavar="BATCH", help="A batch, as `submit` named it.", autocompletion=completing.batches),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("graph", epilog=EPILOG)(graph)


def graph(
    ctx: typer.Context,
    batch: BatchArgument,
    svg: Annotated[bool, typer.Option("--svg", help="As SVG. This is the default.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As text for Mermaid, which GitHub draws.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="As text for Graphviz.")] = False,
    file: saving.OutputOption = None,
) -> None:
    """Draw the tasks of a batch, and what each waits for.

    Colours and signs show their states. Above 200 tasks, those that are alike become one box that says how many it
    holds. Archived tasks are shown, too.
    """
    from spoold.protocol.errors import BadFile

    if svg + mermaid + dot > 1:
        raise BadFile("the command line", "", "names several formats.", "give one of --svg, --mermaid and --dot.")
    with session(ctx).spool() as spool:
        scene = spool.scene(batch)
    if mermaid:
        from spoold.pictures.mermaid import write
    elif dot:
        from spoold.pictures.dot import write
    else:
        from spoold.pictures.graph_svg import draw as write
    saving.save(write(scene), file)
