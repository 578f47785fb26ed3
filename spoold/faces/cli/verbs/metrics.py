"""`spool metrics`: this spool's figures for Prometheus.

Law: nothing is written to the share. The text goes to stdout, to a local file, or to those that ask over HTTP.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import local_files, output
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool metrics --port 9464

Example: spool metrics -o /var/lib/prometheus/node-exporter/spoold.prom"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("metrics", epilog=EPILOG)(metrics)


def metrics(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Replace this local file, for node_exporter; its name ends in .prom. Else, or for -, to stdout.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            show_default=False,
            help="Serve them at /metrics, until Ctrl-C; 0 takes any port that is free.",
        ),
    ] = None,
    address: Annotated[
        str, typer.Option("--address", metavar="IP", help="Where to serve them; there is no password.")
    ] = "127.0.0.1",
    textfile: Annotated[str | None, local_files.older("--textfile")] = None,
) -> None:
    """Print the figures of this spool as Prometheus reads them.

    They are the leader's last snapshot, all heartbeats, and the room on the share. A server also follows the journals
    from its start on, and adds how tasks ended, waited and ran. docs/monitoring/ has alerts and a dashboard.
    """
    file = local_files.named(file, textfile, "--textfile")
    if file is not None and port is not None:
        raise SpoolError("-o and --port exclude each other. Fix: run the verb twice.")
    with session(ctx).spool() as spool:
        if port is not None:
            _serve(spool, address, port)
            return
        from spoold.faces.metrics.exposition import text_of
        from spoold.faces.metrics.gauges import samples

        text = text_of(samples(spool.measure()))
        if file in (None, "-"):
            output.print_exactly(text.removesuffix("\n"))
        else:
            local_files.replace(str(file), text, spool=session(ctx).directory(), option="-o")


def _serve(spool: SpoolClient, address: str, port: int) -> None:
    import sys

    from spoold.faces.metrics import endpoint
    from spoold.faces.metrics.attempt_counters import Attempts
    from spoold.faces.metrics.endpoint import Page
    from spoold.faces.metrics.exposition import text_of
    from spoold.faces.metrics.gauges import samples

    attempts, cursor, figures = Attempts(), spool.events_from_now(), spool.measure()
    attempts.begin(figures)
    known = set(figures.beats)

    def look() -> str:
        nonlocal cursor, known
        figures = spool.measure()
        # A node that has left since the last look wrote its last lines in between.
        new = spool.events(cursor, writers=known | figures.beats.keys())
        attempts.take(new.items, figures)
        cursor, known = new.cursor, {*figures.beats, *(event.writer for event in new.items)}
        return text_of({**samples(figures), **attempts.samples()})

    def say(url: str) -> None:
        output.print_line(url)
        sys.stdout.flush()

    endpoint.run(Page(look), address, port, say)
