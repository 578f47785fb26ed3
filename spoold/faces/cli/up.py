"""`spool up`: a master and workers here.

Law: a mistake in the spool or in the configuration file is reported here once, before any child is started.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli.session import session

EPILOG = """Example: spool up --workers 2 --slots 4 --allow-command"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("up", epilog=EPILOG)(up)


def up(
    ctx: typer.Context,
    workers: Annotated[int, typer.Option("--workers", min=0, metavar="N", help="How many worker processes.")] = 1,
    slots: Annotated[
        int | None,
        typer.Option("--slots", min=1, max=4096, metavar="N", help="Tasks at once per worker; else one per CPU."),
    ] = None,
    allow_command: Annotated[
        bool, typer.Option("--allow-command", help="Run any command that is submitted.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The workers' name; else the one in the file, or the host's."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="The workers' configuration (TOML).")
    ] = None,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True)] = False,
) -> None:
    """Run a master and workers here.

    Ctrl-C drains them; a second Ctrl-C hands back their running tasks."""
    from spoold.agents.configuration.profiles import expand
    from spoold.daemon import up as daemon

    # A mistake in the spool or the file is reported here once, not by every child.
    from spoold.worker.handlers.worker_config import load_config

    settings = load_config(config, expand=expand)
    with session(ctx).spool(settings.spool) as spool:
        directory = spool.directory
    code = daemon.up(
        directory,
        workers=workers,
        slots=slots,
        allow_command=allow_command,
        name=name or settings.name,
        config=config,
        until_eof=until_eof,
    )
    raise typer.Exit(code)
