"""`spool hold` and `spool release`: keep tasks from starting, one by one; and give reservations back.

Law: a task is named by its whole id, since the beginning of an id may fit another task. A name that is that of a
reservation means the reservation.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, output
from spoold.faces.cli.session import session
from spoold.protocol.amount import amount

HOLD_EPILOG = """Example: spool hold deploy-7 --reason 'not before the review'"""
RELEASE_EPILOG = """Example: spool release deploy-7

Example: spool release hbv8u6ps6m-k3j21a0b"""

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Tasks, by their whole ids.", autocompletion=completing.living),
]
Some = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="Tasks, by their whole ids, or reservations, as `spool reserve` printed them.",
        autocompletion=completing.living,
    ),
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


def release(ctx: typer.Context, ids: Some = None, reason: Why = "", as_json: output.JsonOption = False) -> None:
    """Let held tasks start again, or give reservations back.

    It lifts every hold of the task: those of `spool hold`, and the one that it was submitted with. Without an ID, all
    reservations that you made on this machine; within a task, all of the task."""
    with session(ctx).spool() as spool:
        reserved = spool.reserved() if ids else ()
        names, tasks = ([one for one in ids or () if (one in reserved) is wanted] for wanted in (True, False))
        released = spool.release_held(tasks, reason=reason) if tasks else []
        names = spool.release(names) if names or not ids else []
    if names or not ids:
        output.remark(f"{amount(len(names), 'reservation')} given back" if names else "no reservation is yours")
    if released:
        _print(released, "released", "may start", as_json)


def _print(ids: list[str], what: str, then: str, as_json: bool) -> None:
    if as_json:
        output.print_json({what: ids})
        return
    for task_id in ids:
        output.print_line(task_id)
    output.remark(f"{amount(len(ids), 'task')} {then}")
