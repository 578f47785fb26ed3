"""`spool trace`: tasks as spans of OpenTelemetry, into a file or to a collector.

Law: the spans are made by `spoold.pictures`. OpenTelemetry's SDK is imported only to send them.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import completion, group, local_files, output
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, SpoolError

if TYPE_CHECKING:
    from spoold.pictures.traces.span import Span

    Sender = Callable[[Sequence[Span], str], None]

ACTIONS = ("export",)

EPILOG = """Example: spool trace export nightly -o nightly.jsonl

Example: spool trace export nightly --endpoint http://localhost:4318

Example: OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20$TOKEN" spool trace export --endpoint https://otlp.example.com"""


def offer(incomplete: str) -> list[str]:
    """Return the actions that begin so, for a shell that completes a word."""
    return [action for action in ACTIONS if action.startswith(incomplete)]


def names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the batches and the ids that begin so."""
    return [*completion.batches(ctx, incomplete), *completion.ids(ctx, incomplete)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("trace", epilog=EPILOG)(trace)


def trace(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="What to do: export.", autocompletion=offer)],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Batches and tasks, also archived ones; else all tasks.",
            autocompletion=names,
            show_default=False,
        ),
    ] = None,
    archived: Annotated[bool, typer.Option("--all", help="Without a name: also the tasks in the archive.")] = False,
    file: local_files.OutputOption = None,
    out: Annotated[str | None, local_files.older("--out")] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", metavar="URL", show_default=False, help="Send them to this collector, over OTLP/HTTP."
        ),
    ] = None,
) -> None:
    """Export tasks as traces: submission, waiting, attempts, and what agents told of theirs.

    As lines of OTLP JSON, which a collector's `otlpjsonfile` receiver reads, or to a collector, which needs the extra
    `otel`. Ids follow from the tasks, so that an export that is repeated tells nothing twice. Attempts that run are
    left out until they have ended.
    """
    if action not in ACTIONS:
        raise BadFile(f"spool trace {action}", "", "is no such action.", f"use one of {', '.join(ACTIONS)}.")
    file = local_files.named(file, out, "--out")
    if endpoint is not None and file is not None:
        raise SpoolError("-o and --endpoint exclude each other. Fix: run the verb twice.")
    send = None if endpoint is None else _sender()
    with session(ctx).spool() as spool:
        found = spool.traces(words or (), archived=archived)
    if send is not None and endpoint is not None:
        send(found.spans, endpoint)
    else:
        from spoold.pictures.traces.span import lines

        local_files.save("".join(lines(found.spans)), file)
    if endpoint is not None or file not in (None, "-"):
        output.remark(f"{amount(len(found.spans), 'span')} of {amount(found.tasks, 'task')}")
    if found.open:
        left = amount(found.open, "attempt")
        output.remark(f"{left} that {'has' if found.open == 1 else 'have'} not ended: left out until then")


def _sender() -> Sender:
    try:
        from spoold.faces.trace_export import send
    except ImportError as error:
        raise group.missing("spool trace export --endpoint", "otel", error) from error
    return send
