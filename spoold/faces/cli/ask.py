"""`spool ask`: a running task asks people something.

Law: stdout has the answer, and nothing else. The question stands until the attempt is over.

Touches: the terminal.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from spoold.faces.cli import output
from spoold.faces.cli.group import TASK_FAILED
from spoold.faces.cli.session import session

EPILOG = """Example: spool ask 'Which branch?' --choices main,next --wait --timeout 2h"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ask", epilog=EPILOG)(ask)


def ask(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="What people are asked.")],
    choices: Annotated[str, typer.Option("--choices", metavar="A,B", help="The answers that may be given.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the answer, and print it.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than: seconds, or 90s, 5m, 2h.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Ask people something, from within a running task.

    `spool asks` lists the question, and `spool approve` answers it. The command prints the question's name at once.
    Told to wait, it prints the answer in place of that: a text as it is, any other value as JSON. It exits with 1 if
    the question was rejected, and with 124 if the time was over first."""
    from spoold.faces.cli.values import duration

    timeout_s = None if timeout is None else duration(timeout, "--timeout")
    words = tuple(word.strip() for word in choices.split(",") if word.strip())
    with session(ctx).spool() as spool:
        question = spool.ask(text, words, expires_s=timeout_s)
        if not wait:
            output.print_json({"question": question}) if as_json else output.print_line(question)
            return
        found = spool.answer_to(question, timeout_s)
    if as_json:
        output.print_json(found)
    elif not found.rejected:
        said = found.answer if isinstance(found.answer, str) else json.dumps(found.answer, ensure_ascii=False)
        output.print_data(said)
    if found.rejected:
        output.remark(f"rejected by {output.within(found.by or 'an unknown user')}: {output.within(found.reason)}")
        raise typer.Exit(TASK_FAILED)
