"""`spool ls`: the tasks of a spool."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.cli import output
from spoold.cli.session import session

if TYPE_CHECKING:
    from spoold.client.spool import Spool
    from spoold.protocol.lifecycle import State
    from spoold.store.locate import Located

EPILOG = """Example: spool ls --state failed

Example: spool ls --batch nightly --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ls", epilog=EPILOG)(ls)


def ls(
    ctx: typer.Context,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="S",
            help="Only these: pending, waiting, ready, claimed, completed, failed, rejected. Repeatable, or a,b.",
        ),
    ] = None,
    batch: Annotated[str | None, typer.Option("--batch", metavar="B", help="Only tasks of this batch.")] = None,
    archived: Annotated[bool, typer.Option("--all", help="Those in the archive too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="At most so many; 0: all.")] = 0,
    quiet: output.QuietOption = False,
    as_json: output.JsonOption = False,
) -> None:
    """List tasks.

    In the order of their life: pending first, rejected last."""
    wanted = _states(states)
    with session(ctx).spool() as spool, spool.reaching():
        rows = _rows(spool, wanted, batch, archived=archived)
        rows = islice(rows, limit) if limit else rows
        if as_json:
            output.print_json([_as_json(located) for located in rows])
        elif quiet:
            for located in rows:
                output.print_line(output.one_line(located.id, 300))
        else:
            header = ("ID", "STATE", "ATTEMPT", "WORKER", "LANE")
            output.print_table(header, [_cells(located) for located in rows])


def _states(texts: list[str] | None) -> tuple[State, ...]:
    from spoold.protocol.errors import BadFile
    from spoold.store.locate import SHOWN

    words = [word.strip().lower() for text in texts or () for word in text.split(",") if word.strip()]
    known = {state.value: state for state in SHOWN}
    for word in words:
        if word not in known:
            raise BadFile("--state", "", f"{word!r} is no state.", f"use one of {', '.join(known)}.")
    return tuple(known[word] for word in words) or SHOWN


def _rows(spool: Spool, states: tuple[State, ...], batch: str | None, *, archived: bool) -> Iterator[Located]:
    from spoold.client.info import read_content
    from spoold.store.locate import iter_tasks

    for located in iter_tasks(spool.store, states, archived=archived):
        if batch is None or read_content(spool.store, located).get("batch") == batch:
            yield located


def _cells(located: Located) -> tuple[object, ...]:
    state = f"{located.state} (archived)" if located.archived else located.state
    return (located.id, state, located.attempt or "-", located.node or "-", located.lane or "-")


def _as_json(located: Located) -> dict[str, Any]:
    return {
        "id": located.id,
        "state": located.state.value,
        "attempt": located.attempt,
        "worker": located.node or None,
        "lane": located.lane or None,
        "archived": located.archived,
        "path": located.path,
    }
