"""`spool web`: this spool in a browser, on this machine.

Law: what is shown is read; only with --allow-actions does anything post requests. The URL goes to stdout, all else to
stderr. The packages of the extra are imported only to serve.

Touches: the terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import group, output
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.faces.web.http_server import Place

EPILOG = """Example: spool web

Example: spool web --port 8378 --allow-actions

Example: spool web --socket ~/spool-web.sock"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("web", epilog=EPILOG)(web)


def web(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="Where; 0 takes any port that is free.")
    ] = 0,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="IP",
            show_default=False,
            help="This address, without a name of its own; one that is not loopback needs --unencrypted, too.",
        ),
    ] = None,
    unix: Annotated[
        str | None,
        typer.Option(
            "--socket",
            metavar="PATH",
            show_default=False,
            help="Listen on a Unix socket that only you can open, in place of a port.",
        ),
    ] = None,
    allow_actions: Annotated[
        bool,
        typer.Option("--allow-actions", help="The pages may cancel, retry, hold, answer, pause and drain, too."),
    ] = False,
    unencrypted: Annotated[
        bool,
        typer.Option(
            "--unencrypted",
            help="With --host: I know that others on the network can read the pages and act in my name.",
        ),
    ] = False,
) -> None:
    """Show this spool in a browser: tasks, logs, nodes, batches, limits.

    It prints a URL that works once, and serves until Ctrl-C. In a terminal, Enter prints a new URL. It listens on
    this machine alone; ssh carries it to another one. It only reads, unless actions are allowed.
    """
    if unix is not None and (port or host is not None or unencrypted):
        raise SpoolError("--socket excludes --port, --host and --unencrypted. Fix: leave one of them out.")
    try:
        from spoold.faces.web import http_server
        from spoold.faces.web.site import Site
    except ImportError as error:
        raise group.missing("spool web", "web", error) from error
    from spoold.client.view import Watch

    with session(ctx).spool() as spool:
        spool.via = "web"
        view = spool.view()
        place = (
            http_server.listen(host, port, unencrypted=unencrypted) if unix is None else http_server.listen_at(unix)
        )
        if not place.path and unencrypted:
            output.remark(f"WARNING: {place.host} is reached over the network without encryption. {_OPEN}")
        with Watch(view, alone=True) as watch:
            site = Site(spool, view, spool.store.marker.spool_id, actions=allow_actions)
            http_server.run(site, watch, place, lambda url: _say(place, url), _enter if sys.stdin.isatty() else None)


_OPEN = "Others there can read the pages and your cookie, and act in your name."


def _enter() -> bool:
    """Wait for Enter; False for the end of the terminal."""
    try:
        return bool(sys.stdin.readline())
    except (OSError, ValueError):
        return False


def _say(place: Place, url: str) -> None:
    output.print_line(url)
    sys.stdout.flush()
    if place.path:
        output.remark(
            f"it listens at {place.path}: `ssh -L 8378:{place.path} HOST` makes it http://{place.name}:8378"
        )
    elif sys.stdin.isatty():
        output.remark("the URL works once; Enter prints a new one, Ctrl-C ends")
