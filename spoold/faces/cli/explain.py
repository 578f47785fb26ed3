"""`spool explain`: why a task is not running, and what would change it.

Law: no reason is made here. The verdict comes first, and each reason is followed by the change that would help.

Touches: the terminal.
"""

from __future__ import annotations

import typer

from spoold.faces.cli import choosing
from spoold.faces.cli.output import JsonOption, few, print_json, print_prose, quoted, sentence, within
from spoold.faces.cli.session import session

REASONS_SHOWN = 30
EPILOG = """Example: spool explain review-3f9a

Example: spool explain review-3f9a --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("explain", epilog=EPILOG)(explain)


def explain(
    ctx: typer.Context,
    task: choosing.REF,
    as_json: JsonOption = False,
) -> None:
    """Say why a task is in its state, and what would change that.

    It names the gate, lane or worker that the task waits for, by the same rules as the leader and the workers.
    """
    with session(ctx).spool() as spool:
        answer = choosing.read_one(spool, task, spool.explain)
    if as_json:
        print_json(answer)
        return
    attempt = f", attempt {answer.attempt}" if answer.attempt else ""
    print_prose(f"{within(answer.id)} ({answer.state}{attempt}): {sentence(answer.verdict)}")
    if answer.last_line:
        print_prose(f"  the last line of its output: {quoted(answer.last_line)}", "    ")
    shown, more = few(answer.reasons, REASONS_SHOWN)
    for reason in shown:
        if reason.reason != answer.verdict:
            print_prose(f"  {reason.gate}: {sentence(reason.reason)}", "    ")
        print_prose(f"  what would change it ({reason.gate}): {sentence(reason.change)}", "    ")
    if more:
        print_prose(f"  {more}")
