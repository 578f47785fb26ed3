"""`spool checkpoint`: within a task, save how far it has come, or print what an earlier attempt has saved.

Law: what is printed was saved whole. Exit code 4 where nothing was saved yet.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import print_line, write_bytes

EPILOG = """Example: spool checkpoint 'step 3 of 9'     (within a task)

Example: spool checkpoint @state.json

Example: state=$(spool checkpoint) || state=new"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("checkpoint", epilog=EPILOG)(checkpoint)


def checkpoint(
    ctx: typer.Context,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE]", help="JSON or any text to save; @FILE reads it from there.", show_default=False
        ),
    ] = None,
) -> None:
    """Save how far this task has come; without a value, print what was saved last.

    The next attempt of the task finds it, also on another machine. Exit code 4 if nothing was saved yet."""
    from spoold.client.context_and_steps import Steps
    from spoold.protocol.errors import NotFound

    given = None if value is None else _value(value)
    with session(ctx).spool() as spool:
        steps = Steps(spool)
        if value is not None:
            print_line(str(steps.save(given)))
            return
        found = steps.last()
    if found is None:
        raise NotFound("this task has saved nothing yet.")
    write_bytes(_text(found[1]))


def _value(word: str) -> Any:
    """Return the JSON value of a word or of a file; text that is no JSON is itself. Errors: BadFile."""
    from spoold.faces.cli.terminal.values import read_file
    from spoold.protocol.codec import value_of
    from spoold.protocol.errors import BadFile

    try:
        text = read_file(word[1:]).decode() if word.startswith("@") else word
    except UnicodeDecodeError:
        raise BadFile(word[1:], "", "is no UTF-8 text.", "save text, or JSON.") from None
    return value_of(text)


def _text(value: Any) -> bytes:
    """Return a text as it was saved, anything else as JSON, each with a line's end."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")
