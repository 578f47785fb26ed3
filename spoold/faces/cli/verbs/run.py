"""`spool run`: a command as if it ran here.

Law: with --id, Ctrl-C cancels the task only if there was none of that id before, and only after its drop was judged:
else it may be the task of another program. The exit code is 0 only if the task has ended and has succeeded.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import output, streams, task_options
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import COMMAND, INTERRUPTED, TASK_FAILED, TrailingCommand
from spoold.faces.cli.terminal.wait_progress import saying_why

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient

# 128 + SIGPIPE: a command that ran here would end by that signal.
UNREAD = 141

EPILOG = """Example: spool run --cwd . -- make test

Example: git diff | spool run --stdin -- wc -l

Example: spool run --requires gpu=1 --timeout 2h --cwd /data/project -- python train.py"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", cls=TrailingCommand, epilog=EPILOG)(run)


def run(
    ctx: typer.Context,
    kind: task_options.TYPE = None,
    input_json: task_options.INPUT = None,
    task_id: task_options.ID = None,
    name: task_options.NAME = None,
    priority: task_options.PRIORITY = None,
    after: task_options.AFTER = None,
    timeout: task_options.TIMEOUT = None,
    retries: Annotated[
        int, typer.Option("--retries", min=0, metavar="N", help="How often to try again when it fails.")
    ] = 0,
    requires: task_options.REQUIRES = None,
    uses: task_options.USES = None,
    bulkhead: task_options.CLASS = None,
    budgets: task_options.BUDGETS = None,
    locks: task_options.LOCKS = None,
    reads: task_options.READS = None,
    batch: task_options.BATCH = None,
    env: task_options.ENV = None,
    cwd: task_options.CWD = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read standard input to its end, and give it to the command as its own.")
    ] = False,
) -> None:
    """Run a command on a worker as if it ran here.

    Shows its output and exits with its exit code, or with 128 plus the number of the signal that killed it. Its
    stderr comes on stdout too, in the order in which it was written: a task has one log. Its stdin is empty without
    --stdin. It runs on any worker that takes it, once unless --retries says more. Ctrl-C cancels it, and so does a
    reader that closes the pipe, as in `spool run … | head`; the exit code is then 130 or 141. With --id it cancels
    no task that was there before.
    """
    from spoold.faces.cli.terminal import values
    from spoold.protocol.errors import SpoolError

    gates = None, None, uses, bulkhead, budgets, locks, reads
    fields = task_options.Options(
        kind, input_json, task_id, name, priority, after, timeout, retries, requires, batch, env, cwd, *gates
    ).fields()
    command = ctx.meta.get(COMMAND)
    draft = fields if command is None and kind else task_options.with_command(fields, command or [])
    with session(ctx).spool() as spool:
        if stdin:
            draft = {**draft, "stdin": values.standard_input(spool.store.settings.drop.max_bytes)}
        elif streams.is_piped():
            output.remark("spool: standard input is not sent to the command; --stdin sends it")
        # A task that was there before, with the same content, is another program's.
        anothers = task_id is not None and _is_there(spool, task_id)
        with task_options.naming_options(fields):
            submitted = spool.submit_from("the command", draft)
        task_options.warn_of_room(spool)
        judged = task_id is None
        try:
            refused = spool.refusal(submitted)
            if refused is not None:
                raise SpoolError(output.why_ended(refused))
            judged = True
            code = _attend(spool, submitted)
        except streams.ReaderGone as gone:
            streams.give_up(gone)
            _cancel(spool, submitted, "the reader of spool run's output has gone", mine=judged and not anothers)
            code = UNREAD
        except KeyboardInterrupt:
            _cancel(spool, submitted, "Ctrl-C in spool run", mine=judged and not anothers)
            code = INTERRUPTED
    raise typer.Exit(code)


def _is_there(spool: SpoolClient, task_id: str) -> bool:
    from spoold.protocol.errors import NotFound

    try:
        return spool.locate(task_id).id == task_id
    except NotFound:
        return False


def _cancel(spool: SpoolClient, task_id: str, reason: str, *, mine: bool) -> None:
    """Cancel the task if this command has submitted it, and say on stderr what becomes of it."""
    if not mine:
        why = "it is not admitted yet, or another program has submitted the same task"
        output.remark(f"spool: {task_id} is not cancelled: {why}. `spool cancel {task_id}` cancels it all the same")
        return
    spool.cancel(task_id, reason=reason)
    output.remark(f"spool: {task_id} is being cancelled: {reason}")


def _attend(spool: SpoolClient, task_id: str) -> int:
    """Show the log until the task has ended; return its exit code."""
    log = output.Log()
    try:
        with saying_why(spool, [task_id]):
            for piece in spool.logs(task_id, follow=True, attempt=0, sleep=streams.sleep):
                log.show(piece)
    finally:
        log.show(b"", last=True)
    from spoold.client.spool.waiting import shell_code

    result = spool.result(task_id)
    if result.status == "success":
        return 0
    if result.status == "skipped":
        output.remark(f"spool: {task_id} was skipped: {output.within(output.why_ended(result))}")
        return 0
    output.remark(f"spool: {task_id} failed: {output.within(output.why_ended(result))}")
    return shell_code(result) or TASK_FAILED
