"""`spool submit`: makes tasks from files, standard input, options or a command.

Law: all files are read and checked before the first task is submitted, so that one wrong file or task stops all of
them. An option counts for every task, and overrides the value in the file.

Touches: the terminal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import output, task_options
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import COMMAND, TASK_FAILED, TrailingCommand

if TYPE_CHECKING:
    from spoold.client.spool.submission import Drop
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool submit review.json more-tasks.jsonl

Example: spool submit --type review --input '{"file": "a.py"}' --priority high

Example: spool submit --uses anthropic --lock 'src/api/**' --type review

Example: spool submit --approval 'Deploy to production?' --after build -- ./deploy

Example: spool submit --requires cpu=2,mem=4G --batch nightly --cwd /data/project -- make test"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("submit", cls=TrailingCommand, epilog=EPILOG)(submit)


def submit(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="A task (.json), many (.jsonl), or - for stdin."),
    ] = None,
    kind: task_options.TYPE = None,
    input_json: task_options.INPUT = None,
    task_id: task_options.ID = None,
    name: task_options.NAME = None,
    priority: task_options.PRIORITY = None,
    after: task_options.AFTER = None,
    after_failed: task_options.AFTER_FAILED = None,
    after_batch: task_options.AFTER_BATCH = None,
    timeout: task_options.TIMEOUT = None,
    retries: task_options.RETRIES = None,
    requires: task_options.REQUIRES = None,
    uses: task_options.USES = None,
    bulkhead: task_options.CLASS = None,
    budgets: task_options.BUDGETS = None,
    locks: task_options.LOCKS = None,
    reads: task_options.READS = None,
    hold: task_options.HOLD = None,
    approval: task_options.APPROVAL = None,
    batch: task_options.BATCH = None,
    env: task_options.ENV = None,
    cwd: task_options.CWD = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for all of them; exit 1 if any failed.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Submit tasks.

    They come from files, from stdin, from options, or are a command after --. Prints the ids, one per line. With
    files, options apply to every task in them. If one task is wrong, none is submitted.
    """
    gates = after_failed, after_batch, uses, bulkhead, budgets, locks, reads, hold, approval
    fields = task_options.Options(
        kind, input_json, task_id, name, priority, after, timeout, retries, requires, batch, env, cwd, *gates
    ).fields()
    command = ctx.meta.get(COMMAND)
    drafts = _drafts(files or [], fields, command)
    with session(ctx).spool() as spool:
        with task_options.naming_options(fields):
            drops = [drop for file, found in drafts for drop in _checked(spool, file, found)]
        spool.publish(drops)
        task_options.warn_of_room(spool)
        ids = [task_id for drop in drops for task_id in drop.ids]
        if as_json:
            output.print_json({"ids": ids})
        else:
            for one in ids:
                output.print_line(one)
        if wait:
            _wait(spool, ids)


def _drafts(
    files: list[str], fields: dict[str, Any], command: list[str] | None
) -> list[tuple[str, dict[str, Any] | list[dict[str, Any]]]]:
    """Read all tasks before any is submitted: file → task or tasks. Errors: BadFile."""
    from spoold.faces.cli.terminal.values import tasks_in
    from spoold.protocol.errors import BadFile

    if files and command is not None:
        raise BadFile("the command line", "", "has files and a command.", "submit them one after the other.")
    if command is not None:
        return [("the command", task_options.with_command(fields, command))]
    if not files and not fields:
        raise BadFile("the command line", "", "says nothing to run.", "give a FILE, -, --type, or -- CMD.")
    if not files:
        return [("the task", fields)]
    drafts: list[tuple[str, dict[str, Any] | list[dict[str, Any]]]] = []
    for file in files:
        found = tasks_in(file)
        if isinstance(found, list):
            drafts.append((file, [{**task, **fields} for task in found]))
        else:
            drafts.append((file, {**found, **fields}))
    many = len(drafts) > 1 or any(isinstance(found, list) and len(found) > 1 for _, found in drafts)
    if "id" in fields and many:
        raise BadFile("--id", "", "is for one task.", "leave it out; every task gets an id of its own.")
    return drafts


def _checked(spool: SpoolClient, file: str, found: dict[str, Any] | list[dict[str, Any]]) -> list[Drop]:
    """Return the tasks of a file as they would be dropped. Errors: BadFile."""
    if isinstance(found, list):
        return spool.drafted_many(found, file=file)
    # A generated id begins like the file's name, as for a file that is dropped by hand.
    stem = os.path.basename(file).rpartition(".")[0] if file.lower().endswith(".json") else ""
    return [spool.drafted(file, found, stem=stem)]


def _wait(spool: SpoolClient, ids: list[str]) -> None:
    from spoold.faces.cli.terminal.wait_progress import wait_with_bar
    from spoold.faces.cli.verbs.wait import report_failures

    results = wait_with_bar(spool, ids, None)
    if report_failures(spool, results):
        raise typer.Exit(TASK_FAILED)
