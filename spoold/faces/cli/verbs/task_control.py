"""`spool cancel`, `retry`, `priority`, `hold`, `release` and `tell`: what is requested of tasks that are there.

Law: a task is named by its whole id, since the beginning of an id may fit another task. Without --state, a selection
to cancel takes only tasks that have not ended, and one to retry takes failed tasks and refuses any other. A name to
release that is that of a reservation means the reservation.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import completion, output, task_selection
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.amount import amount
from spoold.protocol.errors import NotFound

if TYPE_CHECKING:
    from spoold.client.read.selecting import Located
    from spoold.client.spool_client import SpoolClient


CANCEL_EPILOG = """Example: spool cancel review-3f9a

Example: spool cancel --batch nightly --state waiting,ready --reason 'wrong input'

Example: spool cancel --tree plan-7"""


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("cancel", epilog=CANCEL_EPILOG)(cancel)
    app.command("retry", epilog=RETRY_EPILOG)(retry)
    app.command("priority", epilog=PRIORITY_EPILOG)(priority)
    app.command("hold", epilog=HOLD_EPILOG)(hold)
    app.command("release", epilog=RELEASE_EPILOG)(release)
    app.command("tell", epilog=TELL_EPILOG)(tell)


def cancel(
    ctx: typer.Context,
    ids: task_selection.LIVING = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    yes: task_selection.YES = False,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="Also all that they submitted, and what that submitted; waits for the end."),
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the task.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """End tasks, running or not.

    Waiting tasks never start, and running tasks are stopped. Options select tasks in place of ids: each task that
    fits all of them and has not ended. An unknown id does not stop the cancellation of the others. The exit code is 4
    then, and also when no task fits the options.
    """
    from spoold.client.read.preconditions import refuses_cancel
    from spoold.protocol.lifecycle import State
    from spoold.protocol.request import Verb

    living = (State.PENDING, State.WAITING, State.READY, State.CLAIMED)
    words = task_selection.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        chosen = task_selection.choose(spool, words, states=living)
        asked = task_selection.ask_for(spool, Verb.CANCEL, chosen, refuses_cancel, reason=reason, yes=yes)
        if tree:
            able = [one.id for word, one in chosen.asked.items() if word not in chosen.wrong]
            below = spool.cancel(able, reason=reason, tree=True)
            asked = list(dict.fromkeys((*asked, *below)))
    task_selection.print_asked(Verb.CANCEL, asked, chosen.wrong, as_json=as_json)
    chosen.tell()
    chosen.end()


# `spool retry`: tries failed tasks again.


RETRY_EPILOG = """Example: spool retry review-3f9a

Example: spool retry --batch nightly"""
WARNINGS_SHOWN = 20


def retry(
    ctx: typer.Context,
    ids: task_selection.FAILED = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    yes: task_selection.YES = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the journal.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """Try failed tasks again.

    They get a fresh budget of retries. Options select tasks in place of ids: each failed task that fits all of them.
    Name a task and its failed dependencies in one command: without them it fails again.
    An id that is unknown, or of a task that has not failed, does not stop the retry of the others; the exit code
    says so.
    """
    from spoold.client.read.preconditions import refuses_retry
    from spoold.protocol.lifecycle import State
    from spoold.protocol.request import Verb

    words = task_selection.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        chosen = task_selection.choose(spool, words, states=(State.FAILED,))
        asked = task_selection.ask_for(spool, Verb.RETRY, chosen, refuses_retry, reason=reason, yes=yes)
        task_selection.print_asked(Verb.RETRY, asked, chosen.wrong, as_json=as_json)
        _warn(spool, asked, chosen.found)
    chosen.tell()
    chosen.end()


def _warn(spool: SpoolClient, asked: list[str], found: list[Located]) -> None:
    """Report the tasks that will fail again, since a dependency of theirs is not retried."""
    from spoold.client.read.preconditions import warnings_of_retry

    retried = set(asked)
    with spool.reaching():
        warnings = warnings_of_retry(spool.store, [one for one in found if one.id in retried])
    for warning in warnings[:WARNINGS_SHOWN]:
        output.remark(f"spool: {output.within(warning)}")
    if len(warnings) > WARNINGS_SHOWN:
        output.remark(f"… and {len(warnings) - WARNINGS_SHOWN} more")


# `spool priority`: makes tasks more or less urgent.


PRIORITY_EPILOG = """Example: spool priority high review-3f9a

Example: spool priority --batch nightly -- -5"""


def priority(
    ctx: typer.Context,
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="PRIORITY",
            help="An integer, more is sooner, a negative one after --; or critical, high, normal, low.",
        ),
    ],
    ids: task_selection.LIVING = None,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    yes: task_selection.YES = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the journal.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """Make tasks more or less urgent.

    Options select tasks in place of ids: each task that fits all of them and has not ended. A task that runs goes on,
    and its next attempt has the new priority. A failed task that is tried again has that of its file.
    """
    from spoold.client.read.preconditions import rank_in_words, refuses_priority
    from spoold.protocol.lifecycle import State
    from spoold.protocol.request import Verb

    rank = rank_in_words(wanted)
    living = (State.PENDING, State.WAITING, State.READY, State.CLAIMED)
    words = task_selection.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        chosen = task_selection.choose(spool, words, states=living)
        asked = task_selection.ask_for(
            spool,
            Verb.PRIORITY,
            chosen,
            refuses_priority,
            reason=reason,
            yes=yes,
            post=lambda ids: spool.post_priority(ids, rank, reason),
        )
    task_selection.print_asked(Verb.PRIORITY, asked, chosen.wrong, as_json=as_json)
    chosen.tell()
    chosen.end()


# `spool hold` and `spool release`: keep tasks from starting, one by one; and give reservations back.


HOLD_EPILOG = """Example: spool hold deploy-7 --reason 'not before the review'"""
RELEASE_EPILOG = """Example: spool release deploy-7

Example: spool release hbv8u6ps6m-k3j21a0b"""

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Tasks, by their whole ids.", autocompletion=completion.living),
]
Some = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="Tasks, by their whole ids, or reservations, as `spool reserve` printed them.",
        autocompletion=completion.living,
    ),
]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; explain and the journal say it.")]


def hold(ctx: typer.Context, ids: Ids, reason: Why = "", as_json: output.JsonOption = False) -> None:
    """Keep tasks from starting until `spool release`.

    A task that is ready goes back to wait. A task that runs goes on, and its next attempt is held. A held task takes
    no slot and spends no retry."""
    from spoold.client.read.questions import next_attempts

    with session(ctx).spool() as spool:
        held = spool.hold(ids, reason=reason)
        with spool.reaching():
            running = next_attempts(spool.store, held)
    if as_json:
        output.print_json({"held": held, **({"running": list(running)} if running else {})})
        return
    for task_id in held:
        output.print_exactly("\t".join(output.within(part) for part in (task_id, running.get(task_id, "")) if part))
    output.remark(f"{amount(len(held), 'task')} will be held until `spool release`")


def release(ctx: typer.Context, ids: Some = None, reason: Why = "", as_json: output.JsonOption = False) -> None:
    """Let held tasks start again, or give reservations back.

    It lifts every hold of the task: those of `spool hold`, and the one that it was submitted with. Without an ID, all
    reservations that you made on this machine; within a task, all of the task."""
    with session(ctx).spool() as spool:
        reserved = spool.reserved() if ids else ()
        names, tasks = ([one for one in ids or () if (one in reserved) is wanted] for wanted in (True, False))
        try:
            released = spool.release_held(tasks, reason=reason) if tasks else []
        except NotFound:
            spool.raise_if_over(tasks)
            raise
        names = spool.release(names) if names or not ids else []
    if names or not ids:
        output.remark(f"{amount(len(names), 'reservation')} given back" if names else "no reservation is yours")
    if released:
        _print_released(released, as_json)


def _print_released(ids: list[str], as_json: bool) -> None:
    if as_json:
        output.print_json({"released": ids})
        return
    for task_id in ids:
        output.print_line(task_id)
    output.remark(f"{amount(len(ids), 'task')} may start")


# `spool tell`: a message for the agent of a task, waiting or running.


TELL_EPILOG = """Example: spool tell edit-7 'Use the v2 API, not v1.'

Example: spool tell edit-7 - < notes.md"""


def tell(
    ctx: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="ID", help="A task, by its whole id.", autocompletion=completion.living)
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from standard input.")],
    as_json: output.JsonOption = False,
) -> None:
    """Tell the agent of a task something.

    The agent of a running task is given it when its present turn is over: it then takes one turn more, before its
    work is judged. A task that has not begun is given it with its prompt, and so is each later attempt that begins a
    new session. `spool show` says who told what, and which attempts were given it. A message has at most 16 KiB."""
    from spoold.client.read.preconditions import when

    with session(ctx).spool() as spool:
        name = spool.tell(task, _text(spool) if text == "-" else text)
        with spool.reaching():
            given = when(spool.store, task)
    if as_json:
        output.print_json({"task": task, "message": name})
    else:
        output.remark(f"the agent of {output.within(task)} is given it {given}")


def _text(spool: SpoolClient) -> str:
    from spoold.faces.cli.terminal.values import standard_input

    return standard_input(spool.store.settings.drop.max_bytes)
