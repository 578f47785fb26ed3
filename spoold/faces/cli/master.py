"""`spool master`: one leader or standby.

Law: `spool up` starts its master by this verb, with --name and --until-eof. The exit code is that of the daemon.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli.session import session

EPILOG = """Example: spool --spool /mnt/spool master"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("master", epilog=EPILOG)(master)


def master(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Its name; else the host's.")] = None,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True)] = False,
) -> None:
    """Run a master.

    It leads, or stands by until the leader is gone. Any number may run, on any machines."""
    from spoold.daemon.processes import master_main

    raise typer.Exit(master_main(session(ctx).directory(), name, until_eof=until_eof))
