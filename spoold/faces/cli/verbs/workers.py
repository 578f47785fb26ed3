"""`spool workers`: every node that beats, or has stopped. `spool drain`: let workers finish and leave.

Law: every node that the client knows of is shown, also a dead one; the client decides which are dead. To drain,
workers are named or --all is given, never both and never neither. An unknown worker does not stop the others, and the
first unknown one decides the exit code.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import completion, output
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.group import INTERRUPTED, exit_code
from spoold.faces.cli.terminal.output import JsonOption, print_json, print_line, print_prose, print_table, sentence
from spoold.faces.cli.terminal.task_selection import ASK_ABOVE
from spoold.faces.cli.terminal.worker_rows import columns, node_row
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient


WORKERS_EPILOG = """Example: spool workers

Example: spool workers --json"""


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("workers", epilog=WORKERS_EPILOG)(workers)
    app.command("drain", epilog=DRAIN_EPILOG)(drain)


def workers(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Show all workers and masters; the silent ones are called dead, but for those who said that they go to sleep."""
    with session(ctx).spool() as spool:
        found = spool.roster()
    if as_json:
        print_json(found)
        return
    if found.workers:
        print_table(columns(), [node_row(node) for node in found.workers])
        for node in found.workers:
            for note in node.notes:
                print_prose(f"{node.worker}: {sentence(note)}", "  ")
    else:
        print_prose("no workers; `spool worker` or `spool up` starts one")
    print_line("")
    if found.masters:
        print_table(("MASTER", "HOST", "STATE"), [(post.node, post.host, post.state) for post in found.masters])
    else:
        print_prose("no masters; `spool master` or `spool up` starts one")


# `spool drain`: let workers finish and leave.


DRAIN_EPILOG = """Example: spool drain laptop2 laptop3

Example: spool drain --all --undo"""


def drain(
    ctx: typer.Context,
    workers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKER",
            help="Their ids, or the names that they were started with.",
            autocompletion=completion.workers,
        ),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All workers.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help=f"Do not ask, also for more than {ASK_ABOVE} workers.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take a drain back.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the journal.")] = "",
) -> None:
    """Let workers finish and leave.

    They take no new tasks; running tasks may end. An unknown worker does not stop the drain of the others; the exit
    code is 4 then. On a terminal it asks before it drains more than 10 workers.
    """
    from spoold.protocol.errors import BadFile, SpoolError, Unavailable

    if bool(workers) == everyone:
        raise BadFile("the command line", "", "must name workers or --all.", "`spool workers` shows the workers.")
    asked: list[str] = []
    wrong: list[SpoolError] = []
    with session(ctx).spool() as spool:
        ask = spool.undrain if undo else spool.drain
        targets: list[str | None] = list(dict.fromkeys(workers or [])) or [None]
        if not undo and not yes:
            _ask_first(spool, len(targets) if workers else None)
        for worker in targets:
            try:
                asked += ask(worker, reason=reason)
            except Unavailable:
                raise
            except SpoolError as error:
                wrong.append(error)
    what = "may work again" if undo else "will drain"
    if everyone:
        output.remark(f"all workers {what}")
    elif asked:
        output.remark(f"{amount(len(asked), 'worker')} {what}: {', '.join(dict.fromkeys(asked))}")
    for problem in wrong:
        output.remark(f"spool: {output.within(str(problem))}")
    if wrong:
        raise typer.Exit(exit_code(wrong[0]))


def _ask_first(spool: SpoolClient, named: int | None) -> None:
    """Ask on a terminal about many workers. named: their number, None for all. Errors: typer.Exit for a no."""
    count = named
    if count is None:
        count = len(spool.roster().workers)
    if count > ASK_ABOVE and not output.confirmed(f"drain {amount(count, 'worker')}?"):
        output.remark("nothing was requested; --yes skips the question")
        raise typer.Exit(INTERRUPTED)
