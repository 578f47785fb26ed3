"""`spool result`: the result of a task.

Law: stdout has the output alone, or the whole result with --json; the reason for a failure goes to stderr. The exit
code is 1 if the task did not succeed, whatever its output says.

Touches: the terminal.
"""

from __future__ import annotations

import typer

from spoold.faces.cli import output
from spoold.faces.cli.group import TASK_FAILED
from spoold.faces.cli.session import session

EPILOG = """Example: spool result review-3f9a

Example: spool result review-3f9a --json | jq .duration_s"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("result", epilog=EPILOG)(result)


def result(
    ctx: typer.Context,
    task_id: output.TaskArgument,
    as_json: output.JsonOption = False,
) -> None:
    """Print the result of a task.

    Exits with 1 if it failed, with 4 if it has not ended, with 0 if it was skipped. Text is printed as it is, on a
    terminal its text and colours alone; other output as JSON. With --json, the whole result.
    """
    with session(ctx).spool() as spool:
        found = spool.result(task_id)
    if as_json:
        output.print_json(found)
    elif isinstance(found.output, str):
        output.print_data(found.output.removesuffix("\n"))
    elif found.output is not None:
        output.print_json(found.output)
    if found.status != "success":
        skipped = found.status == "skipped"
        if not as_json:
            why = output.why_ended(found)
            output.remark(output.within(f"{found.task_id} {'was skipped' if skipped else 'failed'}: {why}"))
        raise typer.Exit(0 if skipped else TASK_FAILED)
    if found.output_problem and not as_json:
        output.remark(output.within(f"{found.task_id}: {output.why_ended(found)}"))
