"""`spool graph`, `spool timeline` and `spool report`: pictures of a batch, and a file with all of it.

Law: pictures and files are made by `spoold.pictures`; nothing is drawn here.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli.terminal import completion, local_files
from spoold.faces.cli.terminal.global_options import session

GRAPH_EPILOG = """Example: spool graph nightly -o nightly.svg

Example: spool graph nightly --dot | dot -Tpng -o nightly.png"""

BatchArgument = Annotated[
    str,
    typer.Argument(metavar="BATCH", help="A batch, as `submit` named it.", autocompletion=completion.batches),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("graph", epilog=GRAPH_EPILOG)(graph)
    app.command("timeline", epilog=TIMELINE_EPILOG)(timeline)
    app.command("report", epilog=REPORT_EPILOG)(report)


def graph(
    ctx: typer.Context,
    batch: BatchArgument,
    svg: Annotated[bool, typer.Option("--svg", help="As SVG. This is the default.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As text for Mermaid, which GitHub draws.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="As text for Graphviz.")] = False,
    file: local_files.OutputOption = None,
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
    local_files.save(write(scene), file)


# `spool timeline`: when which attempt ran where, as a picture or for Perfetto.


TIMELINE_EPILOG = """Example: spool timeline nightly -o nightly.svg

Example: spool timeline --all --perfetto -o trace.json"""


def timeline(
    ctx: typer.Context,
    batch: Annotated[
        str | None,
        typer.Argument(
            metavar="[BATCH]",
            help="A batch, as `submit` named it, with its archived tasks; else all tasks.",
            autocompletion=completion.batches,
            show_default=False,
        ),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="As SVG. This is the default.")] = False,
    perfetto: Annotated[
        bool, typer.Option("--perfetto", help="As trace events in JSON, for ui.perfetto.dev or chrome://tracing.")
    ] = False,
    archived: Annotated[bool, typer.Option("--all", help="Without a batch: also the tasks in the archive.")] = False,
    file: local_files.OutputOption = None,
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
    local_files.save(write(scene), file)


# `spool report`: all of a batch in one file that can be sent to somebody.


REPORT_EPILOG = """Example: spool report nightly -o nightly.html"""


def report(
    ctx: typer.Context,
    batch: Annotated[
        str,
        typer.Argument(metavar="BATCH", help="A batch, as `submit` named it.", autocompletion=completion.batches),
    ],
    file: local_files.OutputOption = None,
    html: Annotated[str | None, local_files.older("--html")] = None,
) -> None:
    """Write a report of a batch: one HTML file, which needs no network.

    It has the numbers of `spool status --batch`, failures with the ends of their logs, the timeline, the graph, the
    slowest tasks, and tokens and cost by model and by task. Anyone who has the file can read these logs.
    """
    file = local_files.named(file, html, "--html")
    with session(ctx).spool() as spool:
        from spoold.pictures.report_html import TOP, write

        text = write(spool.scene(batch, tails=TOP))
    local_files.save(text, file)
