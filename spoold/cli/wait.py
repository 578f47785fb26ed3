"""`spool wait`: until tasks have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.cli import output
from spoold.cli.group import TASK_FAILED
from spoold.cli.session import session

if TYPE_CHECKING:
    from spoold.protocol.result import Result

EPILOG = """Example: spool wait build-1 build-2 --timeout 10m

Example: spool submit tasks.jsonl | xargs spool wait"""
FAILURES_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("wait", epilog=EPILOG)(wait)


def wait(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="The tasks to wait for.")],
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Give up after: seconds, or 90s, 5m, 2h.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Wait until tasks have ended.

    Exits with 1 if any of them failed, with 124 if the time was over first."""
    from spoold.cli.progress import wait_with_bar
    from spoold.cli.values import duration
    from spoold.protocol.lifecycle import State

    timeout_s = duration(timeout, "--timeout") if timeout is not None else None
    with session(ctx).spool() as spool:
        located = spool.locate_all(ids)
        rejected = {one.drop: spool.result(one.drop) for one in located if one.state is State.REJECTED}
        lasting = [one.id for one in located if one.state is not State.REJECTED]
        results = {**rejected, **wait_with_bar(spool, lasting, timeout_s)}
    if as_json:
        output.print_json(results)
    if report_failures(results):
        raise typer.Exit(TASK_FAILED)


def report_failures(results: dict[str, Result]) -> bool:
    """Say which tasks failed and why; whether any did."""
    failed = [(task_id, result) for task_id, result in results.items() if result.status != "success"]
    for task_id, result in failed[:FAILURES_SHOWN]:
        why = output.why_ended(result)
        output.remark(f"{task_id} failed: {output.one_line(why, 300)}")
    if len(failed) > FAILURES_SHOWN:
        output.remark(f"… and {len(failed) - FAILURES_SHOWN} more")
    return bool(failed)
