"""`spool up`, `spool master` and `spool worker`: the daemons of this machine, all of them or one.

Law: a mistake in the spool or in the configuration file is reported by `up` once, before any child is started. `up`
starts its children by the verbs `master` and `worker`, with --name and --until-eof. The exit code is that of the
daemon. An option overrides the configuration file only if it is given; so --allow-command can only add a permission.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli.terminal.global_options import session

UP_EPILOG = """Example: spool up --workers 2 --slots 4 --allow-command"""


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("up", epilog=UP_EPILOG)(up)
    app.command("master", epilog=MASTER_EPILOG)(master)
    app.command("worker", epilog=WORKER_EPILOG)(worker)


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


# `spool master`: one leader or standby.


MASTER_EPILOG = """Example: spool --spool /mnt/spool master"""


def master(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Its name; else the host's.")] = None,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True)] = False,
) -> None:
    """Run a master.

    It leads, or stands by until the leader is gone. Any number may run, on any machines."""
    from spoold.daemon.processes import master_main

    raise typer.Exit(master_main(session(ctx).directory(), name, until_eof=until_eof))


# `spool worker`: one worker of this machine.


WORKER_EPILOG = """Example: spool worker --slots 4 --types review,test --labels docker

Example: spool worker --config /etc/spoold/lab.toml"""


def worker(
    ctx: typer.Context,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, max=4096, metavar="N", help="Tasks at once; else one per CPU.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Its name; else the host's.")] = None,
    types: Annotated[str | None, typer.Option("--types", metavar="A,B", help="Only tasks of these types.")] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="X,Y", help="Labels that tasks may require.")
    ] = None,
    allow_command: Annotated[
        bool, typer.Option("--allow-command", help="Run any command that is submitted.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Handlers and all other settings (TOML); options override it."),
    ] = None,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True)] = False,
) -> None:
    """Run a worker.

    It takes tasks that it can serve and runs them. SIGTERM or Ctrl-C drains it. Commands run only with
    --allow-command; types run by the handlers in the configuration.
    """
    from functools import partial

    from spoold.agents.configuration.profiles import expand
    from spoold.daemon.processes import worker_main
    from spoold.worker.handlers.worker_config import load_config

    options = {"slots": slots, "name": name, "types": types, "labels": labels, "allow_command": allow_command or None}
    chosen = {key: value for key, value in options.items() if value is not None}
    # With --until-eof it is a child of `spool up`, which has said it.
    read = partial(expand, warns="none" if until_eof else "all")
    settings = load_config(config, chosen, expand=read)
    raise typer.Exit(worker_main(session(ctx).directory(settings.spool), settings, until_eof=until_eof))
