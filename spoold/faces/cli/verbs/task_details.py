"""`spool show`, `spool explain` and `spool tree`: all about a task, why it does not run, and what it submitted.

Law: with --json, `show` of one id is one object, and of several ids or a selection a list, however many tasks fit. No
reason is made here. `explain` says the verdict first, and after each reason the change that would help. A sum in
`tree` is of attempts that ended, as far as they tell.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import output, task_selection
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption, few, print_json, print_prose, quoted, sentence, within
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.read.graph_data import Known
    from spoold.client.read.questions import Shown
    from spoold.client.read.selecting import Located
    from spoold.client.read.task_groups import Branch
    from spoold.client.read.task_info import TaskInfo
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.result import Result


SHOW_EPILOG = """Example: spool show review-3f9a

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
# Lines of the end of its output, and characters of one where nothing says how wide the screen is.
OUTPUT_LINES, LINE_MOST = 10, 500
# What a task may come after, as options of `spool submit` name it; so many tasks are named.
_AFTER = {
    "dependencies": "after",
    "after_any": "after any",
    "after_failed": "after failed",
    "after_batch": "after batch",
}
PARENTS = 20
_TIMES = ("created_at", "admitted_at", "started_at", "completed_at")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("show", epilog=SHOW_EPILOG)(show)
    app.command("explain", epilog=EXPLAIN_EPILOG)(explain)
    app.command("tree", epilog=TREE_EPILOG)(tree)


def show(
    ctx: typer.Context,
    ids: task_selection.REFS = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    whole: Annotated[bool, typer.Option("--tree", help="Also what all below each came to.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Show everything about tasks.

    The state of each, the reason for it, what it waits for, the results of its attempts, all that it runs, and the
    last lines that it wrote. Each line of a command or
    a prompt stands by itself, and what is hidden in it becomes escapes. For a task that waits for an approval it is
    whole, and the last line is the `spool approve` that approves this content and no other. Options select tasks in
    place of ids: each task that fits all of them. With --json, one id is an object, several ids or a selection are a
    list. With --tree, the tokens and the cost of a task's children and theirs are added: that reads every task of the
    spool.
    """
    from spoold.client.read.task_info import described
    from spoold.protocol.lifecycle import SHOWN

    words = task_selection.Words(ids, batches, types, states)
    with session(ctx).spool() as spool, spool.reaching():
        chosen = task_selection.choose(spool, words, states=SHOWN, begun=True)
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
    from spoold.client.read.graph_data import states_known

    known = states_known(spool.store) if len(found) > 1 else {}
    for number, (located, info) in enumerate(zip(found, infos, strict=True)):
        if number:
            output.print_line("")
        _print(spool, info, known)
        if not _print_work(spool, located):
            _print_output(spool, located)


def _print_work(spool: SpoolClient, located: Located) -> bool:
    """Print what it runs, and for a task that waits for a yes how to say it about this content. Returns whether it is
    such a task: below what a person is to confirm, no task writes anything."""
    from spoold.client.read import questions
    from spoold.protocol.errors import BadFile

    try:
        shown = questions.shown_of(spool.store, located)
    except (OSError, BadFile):
        return False  # it is gone, or is no task; what stands above says so
    output.print_line("")
    print_parts(shown)
    if shown.seen and shown.asks:
        output.print_line(f"`spool approve {located.id} --seen {shown.seen}` approves exactly this")
    return shown.asks


def _print_output(spool: SpoolClient, located: Located) -> None:
    """Print the last lines that the last attempt wrote, each marked; nothing where it wrote none."""
    from spoold.client.read.attempt_logs import TAIL_BYTES, last_bytes
    from spoold.pictures.wording import log_text
    from spoold.protocol.errors import NotFound

    try:
        piece = last_bytes(spool.store, located.id, TAIL_BYTES) if located.attempt else None
    except (OSError, NotFound):
        return
    lines = log_text(piece.data).splitlines() if piece is not None else []
    if piece is None or not lines:
        return
    cut = len(piece.data) == TAIL_BYTES  # its first line, too, most likely
    shown = (["…", *lines[1:]] if cut else lines)[-OUTPUT_LINES:]
    whole = len(shown) == len(lines) and not cut
    said = "all of it" if whole else f"its last {amount(len(shown), 'line')}; `spool logs {located.id}` has all"
    output.print_line("")
    output.print_prose(f"output of attempt {piece.attempt} ({said})", "  ")
    for line in shown:
        output.print_line(f"  | {output.quoted(line, (output.width() or LINE_MOST) - 4)}")


def print_parts(shown: Shown) -> None:
    """Print what a task runs: whole where a person is to confirm it, else as much as has room."""
    from spoold.pictures import task_description

    lines, more = task_description.drawn(shown.parts, output.width() or WIDEST), ""
    if not shown.asks:
        lines, more = output.few(lines, LINES)
    for line in [*lines, *filter(None, (more,))]:
        output.print_line(line)


def _print(spool: SpoolClient, info: TaskInfo, known: Known) -> None:
    from spoold.client.read.attempt_logs import work_of_task

    for field in (*_SHOWN, *_TIMES, "path"):
        value = _progress(info) if field == "progress" else getattr(info, field)
        if value not in (None, "") and not (field == "attempt" and not value):
            # People need the whole of a reason.
            text = output.one_line(str(value), 1000)
            archived = " (archived)" if _archived(info, field) else ""
            output.print_prose(f"{field.replace('_', ' '):<13}{text}{archived}", " " * 13)
    for label, said in _parents(spool, info, known):
        output.print_prose(f"{label:<13}{said}", " " * 13)
    if work := work_of_task(spool.store, info):
        output.print_prose(f"{'work':<13}{output.one_line(work, 1000)}", " " * 13)
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


def _parents(spool: SpoolClient, info: TaskInfo, known: Known) -> Iterator[tuple[str, str]]:
    """Yield what it comes after, by the kind of that, with the state of each task now; nothing of a rejected drop."""
    from spoold.client.read.graph_data import parents_seen
    from spoold.protocol.amount import some

    seen = [] if info.state == "rejected" else parents_seen(spool.store, info.task, info.path, known)
    for bond in dict.fromkeys(bond for bond, _, _ in seen):
        named = [f"{one} ({state})" if state else one for kind, one, state in seen if kind is bond]
        yield _AFTER[bond.value], output.one_line(some(named, PARENTS), 2000)


def _had_by(info: TaskInfo, attempts: Sequence[int]) -> str:
    """Return which attempts were given a message."""
    if attempts:
        *first, last = map(str, attempts)
        return f"given to attempts {', '.join(first)} and {last}" if first else f"given to attempt {last}"
    return "never given" if info.completed_at else "not given yet"


def _progress(info: TaskInfo) -> object:
    """Return what it reported, and why that does not count."""
    from spoold.protocol.agent_messages import reported

    said = "" if info.progress is None else reported(info.progress)
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


# `spool explain`: why a task is not running, and what would change it.


REASONS_SHOWN = 30
EXPLAIN_EPILOG = """Example: spool explain review-3f9a

Example: spool explain review-3f9a --json"""


def explain(
    ctx: typer.Context,
    task: task_selection.REF,
    as_json: JsonOption = False,
) -> None:
    """Say why a task is in its state, and what would change that.

    It names the gate, lane or worker that the task waits for, by the same rules as the leader and the workers.
    """
    with session(ctx).spool() as spool:
        answer = task_selection.read_one(spool, task, spool.explain)
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


# `spool tree`: a task and all that it submitted, with what each waits for.


TREE_EPILOG = """Example: spool tree plan-7

Example: spool tree plan-7 --json"""


def tree(
    ctx: typer.Context,
    task: task_selection.REF,
    archived: Annotated[bool, typer.Option("--all", help="Also the tasks in the archive.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Show a task and its children, and theirs.

    A child is a task that a running task submitted. With --json also what is next: `next_actionable`.
    """
    from spoold.client.read.task_groups import actionable

    with session(ctx).spool() as spool:
        root = task_selection.read_one(spool, task, lambda whole: spool.tree(whole, archived=archived))
    if as_json:
        output.print_json({**_as_json(root), "next_actionable": actionable(root)})
        return
    _print_branch(root, "")


def _as_json(one: Branch) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "type": one.type,
        "attempt": one.attempt,
        "worker": one.worker,
        "reason": one.reason,
        "sent_back": one.sent_back,
        "blocked_on": list(one.blocked_on),
        "est_completion": one.est_completion,
        "tokens_used": one.tokens_used,
        "cost_usd": one.cost_usd,
        "tree": one.tree._asdict(),
        "children": [_as_json(child) for child in one.children],
    }


def _print_branch(one: Branch, indent: str) -> None:
    why = f"waits for {', '.join(one.blocked_on)}" if one.blocked_on else one.reason
    why = "; ".join(part for part in (why, one.sent_back) if part)
    said = f"{one.state}{f' on {one.worker}' if one.worker else ''}{f': {why}' if why else ''}"
    spent = _spent(one)
    output.print_line(f"{indent}{output.one_line(f'{one.id} ({said})', 400)}{f': {spent}' if spent else ''}")
    for child in one.children:
        _print_branch(child, f"{indent}  ")


def _spent(one: Branch) -> str:
    """What its own attempts came to, and all below it together with it."""
    own, whole = output.spent(one.tokens_used, one.cost_usd), one.tree
    below = output.spent(whole.tokens_used, whole.cost_usd) if one.children else []
    with_all = f"with {whole.tasks - 1} below it: {', '.join(below)}" if below else ""
    return "; ".join(filter(None, (", ".join(own), with_all)))
