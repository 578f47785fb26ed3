"""`spool tell`: a message for the agent of a task, waiting or running.

Law: a task is named by its whole id, since the beginning of an id may fit another task.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import completing, output
from spoold.faces.cli.session import session

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
    with session(ctx).spool() as spool:
        name = spool.tell(task, _standard_input() if text == "-" else text)
    if as_json:
        output.print_json({"task": task, "message": name})
    else:
        output.remark(f"the agent of {output.within(task)} is given it at its next turn")


def _standard_input() -> str:
    """Read the message. Errors: BadFile."""
    from spoold.faces.cli.values import read_file
    from spoold.protocol.errors import BadFile

    try:
        return read_file("-").decode()
    except UnicodeDecodeError:
        raise BadFile("the message", "", "is no UTF-8 text.", "write it as UTF-8.") from None
