"""`spool tell`: a message for the agent of a task, waiting or running.

Law: a task is named by its whole id, since the beginning of an id may fit another task.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli import completing, output
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool tell edit-7 'Use the v2 API, not v1.'

Example: spool tell edit-7 - < notes.md"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("tell", epilog=EPILOG)(tell)


def tell(
    ctx: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="ID", help="A task, by its whole id.", autocompletion=completing.living)
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from standard input.")],
    as_json: output.JsonOption = False,
) -> None:
    """Tell the agent of a task something.

    The agent of a running task is given it when its present turn is over: it then takes one turn more, before its
    work is judged. A task that has not begun is given it with its prompt, and so is each later attempt that begins a
    new session. `spool show` says who told what, and which attempts were given it. A message has at most 16 KiB."""
    from spoold.client.read.preconditions import when

    with session(ctx).spool() as spool:
        name = spool.tell(task, _text(spool) if text == "-" else text)
        with spool.reaching():
            given = when(spool.store, task)
    if as_json:
        output.print_json({"task": task, "message": name})
    else:
        output.remark(f"the agent of {output.within(task)} is given it {given}")


def _text(spool: SpoolClient) -> str:
    from spoold.faces.cli.values import standard_input

    return standard_input(spool.store.settings.drop.max_bytes)
