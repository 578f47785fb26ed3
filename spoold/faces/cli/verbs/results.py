"""`spool result` and `spool logs`: what a task returned, and what tasks wrote.

Law: of `result`, stdout has the output alone, or the whole result with --json; the reason for a failure goes to
stderr. The exit code is 1 if the task did not succeed, whatever its output says. The log of one id is printed byte
for byte; to a terminal go its text and its colours alone. Of several tasks, a line of one is never within a line of
another: a line waits until it is whole, its log has ended, or it is longer than LINE_MOST_BYTES.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import output, streams, task_selection
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import TASK_FAILED
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.read.selecting import Located
    from spoold.client.spool_client import SpoolClient


RESULT_EPILOG = """Example: spool result review-3f9a

Example: spool result review-3f9a --json | jq .duration_s"""


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("result", epilog=RESULT_EPILOG)(result)
    app.command("logs", epilog=LOGS_EPILOG)(logs)


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


# `spool logs`: the output of tasks.


# A longer line is shown in parts: a task that writes no line breaks must not fill the memory.
LINE_MOST_BYTES = 64 << 10

LOGS_EPILOG = """Example: spool logs review-3f9a -f

Example: spool logs -f --batch nightly"""


def logs(
    ctx: typer.Context,
    ids: task_selection.REFS = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the tasks have ended.")] = False,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", min=1, metavar="N", help="The log of this attempt; else of the last one."),
    ] = None,
) -> None:
    """Print the stdout and stderr of tasks.

    For one id, it prints the bytes as they were written; on a terminal its text and colours, and nothing else that
    programs write for terminals. For several ids or a selection, it prints lines, each behind
    its task's id. -f prints new lines as they come, of the tasks that exist when it begins.
    """
    from spoold.protocol.lifecycle import SHOWN

    words = task_selection.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        if len(words.ids or ()) == 1 and not words.selection():
            _print_one(spool, (words.ids or ("",))[0], follow=follow, attempt=attempt)
            return
        chosen = task_selection.choose(spool, words, states=SHOWN[:-1], begun=True)
        chosen.tell()
        output.remark(f"logs of {amount(len(chosen.found), 'task')}")
        _print_merged(spool, chosen.found, follow=follow, attempt=attempt)
    chosen.end()


def _print_one(spool: SpoolClient, ref: str, *, follow: bool, attempt: int | None) -> None:
    """Print the log of one task as it is; say on stderr where there is none since the task did not begin."""
    from spoold.client.read.attempt_logs import why_silent

    located, written, log = task_selection.read_one(spool, ref, spool.locate), False, output.Log()
    try:
        for piece in spool.logs(located.id, follow=follow, attempt=attempt, sleep=streams.sleep):
            written = True
            log.show(piece)
    finally:
        log.show(b"", last=True)
    if not written:
        with spool.reaching():
            why = why_silent(spool.store, spool.locate(located.id))
        if why:
            output.remark(f"spool: {output.within(why)}")


def _print_merged(spool: SpoolClient, tasks: list[Located], *, follow: bool, attempt: int | None) -> None:
    """Print the logs of these tasks as one, in whole lines."""
    from spoold.client.read.attempt_logs import Piece, read_logs

    if follow:
        pieces = spool.follow_logs(tasks, attempt=attempt, sleep=streams.sleep)
    else:
        pieces = read_logs(spool.store, [one.id for one in tasks], attempt)
    width = max((len(one.id) for one in tasks), default=0)
    begun: dict[tuple[str, int, str], bytes] = {}

    def tell(piece: Piece, *, last: bool = False) -> None:
        source = (piece.task, piece.attempt, piece.worker)
        *lines, rest = (begun.pop(source, b"") + piece.data).split(b"\n")
        if rest and (last or len(rest) > LINE_MOST_BYTES):
            lines, rest = [*lines, rest], b""
        if rest:
            begun[source] = rest
        for line in lines:
            text = line.decode(errors="backslashreplace").removesuffix("\r")
            output.print_line(f"{piece.task.ljust(width)} | {text}")

    with spool.reaching():
        for piece in pieces:
            tell(piece, last=not follow)
            output.flush()
        for task, number, worker in list(begun):
            tell(Piece(number, worker, b"", task), last=True)
