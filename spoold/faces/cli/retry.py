"""`spool retry`: tries failed tasks again.

Law: a task is named by its whole id, since the beginning of an id may fit another task. A selection without --state
takes failed tasks, and a task in any other state is refused.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli import choosing, output
from spoold.faces.cli.session import session

if TYPE_CHECKING:
    from spoold.client.read.selecting import Located
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool retry review-3f9a

Example: spool retry --batch nightly"""
WARNINGS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("retry", epilog=EPILOG)(retry)


def retry(
    ctx: typer.Context,
    ids: choosing.FAILED = None,
    batches: choosing.BATCHES = None,
    types: choosing.TYPES = None,
    states: choosing.STATES = None,
    yes: choosing.YES = False,
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

    words = choosing.Words(ids, batches, types, states)
    with session(ctx).spool() as spool:
        chosen = choosing.choose(spool, words, states=(State.FAILED,))
        asked = choosing.ask_for(spool, Verb.RETRY, chosen, refuses_retry, reason=reason, yes=yes)
        choosing.print_asked(Verb.RETRY, asked, chosen.wrong, as_json=as_json)
        _warn(spool, asked, chosen.found)
    chosen.tell()
    chosen.end()


def _warn(spool: SpoolClient, asked: list[str], found: list[Located]) -> None:
    """Report the tasks that will fail again, since a dependency of theirs is not retried."""
    from spoold.client.read.preconditions import warnings_of_retry

    retried = set(asked)
    with spool.reaching():
        warnings = warnings_of_retry(spool.store, (one for one in found if one.id in retried))
    for warning in warnings[:WARNINGS_SHOWN]:
        output.remark(f"spool: {output.within(warning)}")
    if len(warnings) > WARNINGS_SHOWN:
        output.remark(f"… and {len(warnings) - WARNINGS_SHOWN} more")
