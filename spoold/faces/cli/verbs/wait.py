"""`spool wait`: waits until tasks have ended.

Law: the tasks are chosen once, when the wait begins. Of several ids, an unknown one does not stop the wait for the
others. The answer has each result under the word that was asked.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import output, task_selection
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import TASK_FAILED
from spoold.protocol.amount import amount, some

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.result import Result

EPILOG = """Example: spool wait build-1 build-2 --timeout 10m

Example: spool wait --batch nightly"""
FAILURES_SHOWN = 20
# With more tasks nothing is said of the time to go: each is read for that.
TASKS_READ = 200


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("wait", epilog=EPILOG)(wait)


def wait(
    ctx: typer.Context,
    ids: task_selection.ENDING = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Give up after: seconds, or 90s, 5m, 2h.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Wait until tasks have ended.

    Options select tasks in place of ids: each task in the spool that fits all of them when the wait begins. Exits
    with 1 if any of them failed (one that was skipped did not), with 124 if the time was over first, with 4 if an id
    is unknown; it still waits for the others. Inside a task, the slot of that task is lent meanwhile, and a selection
    leaves that task out.
    """
    from spoold.client.in_task import task_of
    from spoold.faces.cli.terminal.values import duration
    from spoold.faces.cli.terminal.wait_progress import wait_with_bar
    from spoold.protocol.lifecycle import SHOWN, State

    words = task_selection.Words(ids, batches, types, states)
    timeout_s = duration(timeout, "--timeout") if timeout is not None else None
    with session(ctx).spool() as spool:
        chosen = task_selection.choose(spool, words, states=SHOWN)
        chosen.tell()
        located = chosen.found
        # A selection may hold the very task in which this command runs.
        own = task_of(spool.directory) if not ids else None
        asked = {word: one for word, one in chosen.asked.items() if one.id != own}
        rejected = {word: spool.result(word) for word, one in asked.items() if one.state is State.REJECTED}
        lasting = {word: one.id for word, one in asked.items() if word not in rejected}
        if chosen.many and located:
            output.remark(f"waiting for {amount(len(located), 'task')}{_to_go(spool, located)}")
        ended = rejected | _under(lasting, wait_with_bar(spool, list(dict.fromkeys(lasting.values())), timeout_s))
        results = {word: ended[word] for word in asked if word in ended}
        if as_json:
            output.print_json(results)
        failed = report_failures(spool, results)
    chosen.end()
    if failed:
        raise typer.Exit(TASK_FAILED)


def _under(words: dict[str, str], results: dict[str, Result]) -> dict[str, Result]:
    """Return the results, which are by id, under the words that were asked: a program looks for its own."""
    return {word: results[task_id] for word, task_id in words.items() if task_id in results}


def _to_go(spool: SpoolClient, tasks: list[Any]) -> str:
    """Return in how long they will have ended, for the end of a sentence; '' where that is unknown."""
    from spoold.client.read.task_info import kind_of, read_content
    from spoold.client.spool.waiting import time_left
    from spoold.protocol.amount import length

    some_of_them = tasks[:TASKS_READ]
    eta_s, _ = time_left(spool.store, [(one, kind_of(read_content(spool.store, one))) for one in some_of_them])
    if not eta_s or len(tasks) > len(some_of_them):
        return ""
    return f", about {length(eta_s)} to go"


def report_failures(spool: SpoolClient, results: dict[str, Result]) -> bool:
    """Report which tasks failed, why, and what they wrote last; return whether any did."""
    failed = [(task_id, result) for task_id, result in results.items() if result.status not in ("success", "skipped")]
    for task_id, result in failed[:FAILURES_SHOWN]:
        why = output.why_ended(result)
        output.remark(f"{output.one_line(f'{task_id} failed: {why}', 400)}{_last_words(spool, task_id, result)}")
    skipped = [task_id for task_id, result in results.items() if result.status == "skipped"]
    if skipped:
        output.remark(f"{amount(len(skipped), 'task')} skipped, which is no failure: {some(skipped, FAILURES_SHOWN)}")
    if len(failed) > FAILURES_SHOWN:
        output.remark(f"… and {len(failed) - FAILURES_SHOWN} more")
    return bool(failed)


def _last_words(spool: SpoolClient, task_id: str, result: Result) -> str:
    """Return the last line of its output, for the end of a sentence: the cause is seldom in the result."""
    from spoold.client.read.attempt_logs import last_words

    line = last_words(spool.store, result)
    if not line:
        return ""
    return f"; its last line: {output.quoted(line)} (`spool logs {output.one_line(task_id)}` has all it wrote)"
