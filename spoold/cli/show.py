"""`spool show`: all about one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spoold.cli import output
from spoold.cli.session import session

if TYPE_CHECKING:
    from spoold.client.info import TaskInfo
    from spoold.protocol.result import Result

EPILOG = """Example: spool show review-3f9a

Example: spool show review-3f9a --json"""
_SHOWN = ("id", "name", "state", "attempt", "reason", "type", "batch", "priority", "worker", "lane", "progress")
_TIMES = ("created_at", "admitted_at", "started_at", "completed_at")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show", epilog=EPILOG)(show)


def show(
    ctx: typer.Context,
    task_id: output.TaskArgument,
    as_json: output.JsonOption = False,
) -> None:
    """Show all about one task.

    Where it is and why, and what its attempts ended with."""
    with session(ctx).spool() as spool:
        info = spool.show(task_id)
    if as_json:
        output.print_json(info)
    else:
        _print(info)


def _print(info: TaskInfo) -> None:
    for field in (*_SHOWN, *_TIMES, "path"):
        value = getattr(info, field)
        if value not in (None, "") and not (field == "attempt" and not value):
            # A reason is the one thing here that people need whole.
            text = output.one_line(str(value), 1000)
            output.print_line(f"{field.replace('_', ' '):<13}{text}{' (archived)' if _archived(info, field) else ''}")
    if info.failures or info.crashes:
        output.print_line(f"{'charged':<13}{info.failures} failures, {info.crashes} crashes")
    if info.attempts:
        output.print_line("")
        header = ("ATTEMPT", "STATUS", "WORKER", "SECONDS", "EXIT", "ENDED", "WHY")
        output.print_table(header, [_row(result) for result in info.attempts])


def _archived(info: TaskInfo, field: str) -> bool:
    return field == "state" and info.archived


def _row(result: Result) -> tuple[object, ...]:
    why = f"{result.error.code}: {result.error.message}" if result.error else ""
    code = "-" if result.exit_code is None else result.exit_code
    seconds = f"{result.duration_s:.1f}"
    return (result.attempt, result.status, result.worker_id, seconds, code, result.completed_at, why)
