"""`spool show`: everything about a task, or several.

Law: with --json, one id is one object, and several ids or a selection are a list, however many tasks fit.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli import choosing, output
from spoold.faces.cli.session import session
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.read.questions import Shown
    from spoold.client.read.selecting import Located
    from spoold.client.read.task_info import TaskInfo
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.result import Result

EPILOG = """Example: spool show review-3f9a

Example: spool show --batch nightly --state failed --json"""
_SHOWN = (
    "id",
    "name",
    "state",
    "attempt",
    "reason",
    "sent_back",
    "type",
    "batch",
    "priority",
    "worker",
    "lane",
    "progress",
)
# Lines of what a task runs that asks nobody, and columns of one where nothing says how wide the screen is.
LINES, WIDEST = 60, 2000
_TIMES = ("created_at", "admitted_at", "started_at", "completed_at")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show", epilog=EPILOG)(show)


def show(
    ctx: typer.Context,
    ids: choosing.REFS = None,
    batches: choosing.BATCHES = None,
    types: choosing.TYPES = None,
    states: choosing.STATES = None,
    whole: Annotated[bool, typer.Option("--tree", help="Also what all below each came to.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Show everything about tasks.

    The state of each, the reason for it, the results of its attempts, and all that it runs. Each line of a command or
    a prompt stands by itself, and what is hidden in it becomes escapes. For a task that waits for an approval it is
    whole, and the last line is the `spool approve` that approves this content and no other. Options select tasks in
    place of ids: each task that fits all of them. With --json, one id is an object, several ids or a selection are a
    list. With --tree, the tokens and the cost of a task's children and theirs are added: that reads every task of the
    spool.
    """
    from spoold.client.read.task_info import described
    from spoold.protocol.lifecycle import SHOWN

    words = choosing.Words(ids, batches, types, states)
    with session(ctx).spool() as spool, spool.reaching():
        chosen = choosing.choose(spool, words, states=SHOWN, begun=True)
        infos: Iterable[TaskInfo] = (described(spool.store, located) for located in chosen.found)
        infos = (_with_tree(spool, info) for info in infos) if whole else infos
        if as_json and chosen.many:
            output.print_json(list(infos))
        elif as_json:
            for info in infos:
                output.print_json(info)
        else:
            _print_all(spool, chosen.found, infos)
    if chosen.many and not as_json:
        output.remark(amount(len(chosen.found), "task"))
    chosen.tell()
    chosen.end()


def _with_tree(spool: SpoolClient, info: TaskInfo) -> TaskInfo:
    """Return it with what it and all below it came to, also in the archive. Errors: NotFound, OSError."""
    if info.state == "rejected":  # it is not the task whose id it wanted
        return info
    return replace(info, tree=spool.tree(info.id, archived=True).tree._asdict())


def _print_all(spool: SpoolClient, found: Sequence[Located], infos: Iterable[TaskInfo]) -> None:
    for number, (located, info) in enumerate(zip(found, infos, strict=True)):
        if number:
            output.print_line("")
        _print(info)
        _print_work(spool, located)


def _print_work(spool: SpoolClient, located: Located) -> None:
    """Print what it runs, and for a task that waits for a yes how to say it about this content."""
    from spoold.client.read import questions
    from spoold.protocol.errors import BadFile

    try:
        shown = questions.shown_of(spool.store, located)
    except (OSError, BadFile):
        return  # it is gone, or is no task; what stands above says so
    output.print_line("")
    print_parts(shown)
    if shown.seen and shown.asks:
        output.print_line(f"`spool approve {located.id} --seen {shown.seen}` approves exactly this")


def print_parts(shown: Shown) -> None:
    """Print what a task runs: whole where a person is to confirm it, else as much as has room."""
    from spoold.pictures import task_description

    lines, more = task_description.drawn(shown.parts, output.width() or WIDEST), ""
    if not shown.asks:
        lines, more = output.few(lines, LINES)
    for line in [*lines, *filter(None, (more,))]:
        output.print_line(line)


def _print(info: TaskInfo) -> None:
    for field in (*_SHOWN, *_TIMES, "path"):
        value = _progress(info) if field == "progress" else getattr(info, field)
        if value not in (None, "") and not (field == "attempt" and not value):
            # People need the whole of a reason.
            text = output.one_line(str(value), 1000)
            archived = " (archived)" if _archived(info, field) else ""
            output.print_prose(f"{field.replace('_', ' '):<13}{text}{archived}", " " * 13)
    if task_description := _work(info):
        output.print_prose(f"{'work':<13}{output.one_line(task_description, 1000)}", " " * 13)
    if info.failures or info.crashes:
        failures, crashes = amount(info.failures or 0, "failure"), amount(info.crashes or 0, "crash", "crashes")
        output.print_prose(f"{'charged':<13}{failures}, {crashes}", " " * 13)
    if info.attempts:
        output.print_line("")
        header = ("ATTEMPT", "STATUS", "WORKER", "SECONDS", "CPU", "EXIT", "ENDED", "WHY")
        output.print_table(header, [_row(result) for result in info.attempts])
        if info.total is not None:
            output.print_prose(f"together      {output.summed(info.total)}", " " * 13)
    for one in info.told:
        said = f"{output.one_line(one.by) or 'an unknown user'} at {one.at}, {_had_by(info, one.attempts)}"
        output.print_prose(f"{'told':<13}{said}: {output.one_line(one.text, 1000)}", " " * 13)
    if info.tree is not None:
        spent = output.spent(info.tree["tokens_used"], info.tree["cost_usd"])
        tasks = amount(info.tree["tasks"], "task")
        output.print_prose(f"tree          {', '.join([tasks, *spent])}", " " * 13)


def _work(info: TaskInfo) -> str:
    """Return what the work of its agent came to, by the attempt that ended it; '' for any other task."""
    from spoold.protocol.result import unsaved_of, work_of

    output = info.attempts[-1].output if info.completed_at and info.attempts else None
    return unsaved_of(output) or work_of(output)


def _had_by(info: TaskInfo, attempts: Sequence[int]) -> str:
    """Return which attempts were given a message."""
    if attempts:
        return f"given to attempt {', '.join(map(str, attempts))}"
    return "never given" if info.completed_at else "not given yet"


def _progress(info: TaskInfo) -> object:
    """Return what it reported, and why that does not count."""
    said = "" if info.progress is None else str(info.progress)
    return "; ".join(filter(None, (said, info.progress_problem)))


def _archived(info: TaskInfo, field: str) -> bool:
    return field == "state" and info.archived


def _row(result: Result) -> tuple[object, ...]:
    from spoold.protocol.result import why_ended

    code = "-" if result.exit_code is None else result.exit_code
    seconds = f"{'~' if result.estimated else ''}{result.duration_s:.1f}"
    cpu = "-" if result.cpu_s is None else f"{result.cpu_s:.1f}"
    return (
        result.attempt,
        result.status,
        result.worker_id,
        seconds,
        cpu,
        code,
        result.completed_at,
        "; ".join(filter(None, (f"as {result.type}" if result.instead_of else "", why_ended(result)))),
    )
