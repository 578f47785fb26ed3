"""`spool top`: the pool on a terminal, live, with keys to go deeper and to act.

Law: it needs a terminal, and says what serves a pipe. textual is imported only to show it.

Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from spoold.faces.cli.terminal import group
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.errors import BadFile, SpoolError

EPILOG = """Example: spool top

Example: spool top --read-only --colour light"""
COLOURS = ("auto", "dark", "light", "none")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("top", epilog=EPILOG)(top)


def top(
    ctx: typer.Context,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Only look: the keys that act are left out."),
    ] = False,
    colour: Annotated[
        str,
        typer.Option(
            "--colour",
            metavar="SCHEME",
            help="auto, dark, light, or none; NO_COLOR means none.",
            autocompletion=lambda: list(COLOURS),
        ),
    ] = "auto",
) -> None:
    """Show the pool on the whole terminal, live: nodes, queue, tasks, failures, questions, logs.

    Enter opens what is under the cursor, Esc goes back, `/` filters, `:` names a view, `?` lists all keys.
    Actions ask before they do anything. It needs the extra `tui`.
    """
    if colour not in COLOURS:
        raise BadFile("the command line", "", f"--colour {colour} is none.", f"write one of {', '.join(COLOURS)}.")
    if not _on_terminal():
        raise SpoolError("`spool top` needs a terminal. Fix: `spool status --watch`, or `spool status --json`.")
    try:
        from spoold.faces.top import textual_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise group.missing("spool top", "tui", error) from error
    with session(ctx).spool() as spool:
        textual_app.run(spool, read_only=read_only, colour=colour)


def _on_terminal() -> bool:
    """Return whether a person sees and types here; textual draws on stderr."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(each is not None and each.isatty() for each in streams) and os.environ.get("TERM") not in (
        None,
        "",
        "dumb",
        "unknown",
    )
