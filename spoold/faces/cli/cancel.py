"""`spool cancel`: end tasks, running or not.

Law: a task is named by its whole id, since the beginning of an id may fit another task. A selection without --state
takes only tasks that have not ended.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated

import typer

from spoold.faces.cli import choosing, output
from spoold.faces.cli.session import session

EPILOG = """Example: spool cancel review-3f9a

Example: spool cancel --batch nightly --state waiting,ready --reason 'wrong input'

Example: spool cancel --tree plan-7"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("cancel", epilog=EPILOG)(cancel)


def cancel(
    ctx: typer.Context,
    ids: choosing.LIVING = None,
    batches: choosing.BATCHES = None,
    types: choosing.TYPES = None,
    states: choosing.STATES = None,
    yes: choosing.YES = False,
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
    words = choosing.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        chosen = choosing.choose(spool, words, states=living)
        asked = choosing.ask_for(spool, Verb.CANCEL, chosen, refuses_cancel, reason=reason, yes=yes)
        if tree:
            able = [one.id for word, one in chosen.asked.items() if word not in chosen.wrong]
            below = spool.cancel(able, reason=reason, tree=True)
            asked = list(dict.fromkeys((*asked, *below)))
    choosing.print_asked(Verb.CANCEL, asked, chosen.wrong, as_json=as_json)
    chosen.tell()
    chosen.end()
