"""`spool worker`: one worker of this machine.

Law: an option overrides the configuration file only if it is given; so --allow-command can only add a permission.
`spool up` starts its workers by this verb.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli.session import session

EPILOG = """Example: spool worker --slots 4 --types review,test --labels docker

Example: spool worker --config /etc/spoold/lab.toml"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("worker", epilog=EPILOG)(worker)


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
    from spoold.agents.configuration.profiles import expand
    from spoold.daemon.processes import worker_main
    from spoold.worker.handlers.worker_config import load_config

    options = {"slots": slots, "name": name, "types": types, "labels": labels, "allow_command": allow_command or None}
    settings = load_config(config, {key: value for key, value in options.items() if value is not None}, expand=expand)
    raise typer.Exit(worker_main(session(ctx).directory(settings.spool), settings, until_eof=until_eof))
