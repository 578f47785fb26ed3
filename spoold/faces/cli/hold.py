"""`spool hold` and `spool release`: keep tasks from starting, one by one.

Law: a task is named by its whole id, since the beginning of an id may fit another task.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, output
from spoold.faces.cli.session import session
from spoold.protocol.amount import amount

HOLD_EPILOG = """Example: spool hold deploy-7 --reason 'not before the review'"""
RELEASE_EPILOG = """Example: spool release deploy-7"""

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Tasks, by their whole ids.", autocompletion=completing.living),
]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; explain and the journal say it.")]


def register(app: typer.Typer) -> None:
    """Add both verbs."""
    app.command("hold", epilog=HOLD_EPILOG)(hold)
    app.command("release", epilog=RELEASE_EPILOG)(release)


def hold(ctx: typer.Context, ids: Ids, reason: Why = "", as_json: output.JsonOption = False) -> None:
    """Keep tasks from starting until `spool release`.

    A task that is ready goes back to wait. A task that runs is not touched. A held task takes no slot and spends no
    retry."""
    with session(ctx).spool() as spool:
        held = spool.hold(ids, reason=reason)
    _print(held, "held", "will be held until `spool release`", as_json)


def release(ctx: typer.Context, ids: Ids, reason: Why = "", as_json: output.JsonOption = False) -> None:
    """Let held tasks start again.

    It lifts every hold of the task: those of `spool hold`, and the one that it was submitted with."""
    with session(ctx).spool() as spool:
        released = spool.release_held(ids, reason=reason)
    _print(released, "released", "may start", as_json)


def _print(ids: list[str], what: str, then: str, as_json: bool) -> None:
    if as_json:
        output.print_json({what: ids})
        return
    for task_id in ids:
        output.print_line(task_id)
    output.remark(f"{amount(len(ids), 'task')} {then}")
