"""`spool ls`: the tasks of a spool.

Law: with --quiet or --json, and without --long, --type and --batch, names alone are read, and no task file is opened.
A table for people reads the file of each task that it shows.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spoold.faces.cli.terminal import output, task_selection
from spoold.faces.cli.terminal.global_options import session
from spoold.protocol.amount import amount, figure, length

if TYPE_CHECKING:
    from spoold.client.read.long_listing import Row
    from spoold.client.read.selecting import Located, Selection
    from spoold.client.spool_client import SpoolClient

EPILOG = """Example: spool ls --state failed

Example: spool ls --long --batch nightly --state claimed,failed"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ls", epilog=EPILOG)(ls)


def ls(
    ctx: typer.Context,
    batches: task_selection.BATCHES = None,
    types: task_selection.TYPES = None,
    states: task_selection.STATES = None,
    archived: Annotated[bool, typer.Option("--all", help="Also the tasks in the archive.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="At most N tasks; 0: all.")] = 0,
    quiet: output.QuietOption = False,
    long: Annotated[
        bool,
        typer.Option(
            "--long",
            "-l",
            help="In place of its command: run time, attempt, charges on its retry budget, its worker and that one's "
            "silence, tokens, cost, why it waits or failed, and the last line of its log. With --json, too.",
        ),
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """List tasks: id, state, type, age and command.

    Ordered by state: pending first, rejected last. Options select the tasks that fit all of them. The age is that of
    the task: since it was admitted, or submitted. With -q or --json only names are read, which is the fastest.
    """
    selection = task_selection.selection_of(batches, types, states)
    with session(ctx).spool() as spool, spool.reaching():
        rows = _rows(spool, selection, archived=archived)
        rows = islice(rows, limit) if limit else rows
        if long and not quiet:
            _print_long(spool, rows, as_json=as_json)
        elif as_json:
            output.print_json([_as_json(located) for located in rows])
        elif quiet:
            for located in rows:
                output.print_line(output.one_line(located.id, 300))
        else:
            output.print_table(("ID", "STATE", "TYPE", "AGE", "COMMAND"), _briefs(spool, rows), fit=True)


def _rows(spool: SpoolClient, selection: Selection, *, archived: bool) -> Iterator[Located]:
    from spoold.client.read.completion import select_by_name
    from spoold.client.read.selecting import Words, check_types, nothing_fits, select

    if selection.types or selection.batches:
        met, found = Words(), False
        for located in select(spool.store, selection, archived=archived, met=met):
            found = True
            yield located
        check_types(spool.store, selection.types, met.types)
        if selection.batches and not found:
            output.remark(f"spool: {output.within(str(nothing_fits(selection, met, archived=archived)))}")
    else:
        some = False
        for located in select_by_name(spool.store, selection.states, archived=archived):
            some = True
            yield located
        if not archived and (selection.states or not some):
            _tell_of_archive(spool, selection)


def _tell_of_archive(spool: SpoolClient, selection: Selection) -> None:
    """Say how many more tasks in these states are in the archive: `spool status` counts them."""
    from spoold.client.read.completion import archived_in

    more = archived_in(spool.store, selection.states)
    if more:
        states = " or ".join(one.value for one in selection.states)
        output.remark(f"{amount(more, f'{states} task'.strip())} in the archive; --all lists them, too")


def _print_long(spool: SpoolClient, rows: Iterable[Located], *, as_json: bool) -> None:
    from spoold.client.read.long_listing import describe

    found = describe(spool.store, rows)
    if as_json:
        output.print_json(found)
        return
    header = ("ID", "STATE", "TYPE", "AGE", "RUNS", "ATTEMPT", "CHARGED", "WORKER", "SILENT", "TOKENS", "COST")
    output.print_table((*header, "REASON", "LAST LINE"), [_long_cells(row) for row in found])


def _long_cells(row: Row) -> tuple[object, ...]:
    charged = None if row.failures is None else row.failures + (row.crashes or 0)
    return (
        row.id,
        _state(row.state, row.archived),
        output.one_line(row.type, 40) or "-",
        *("-" if seconds is None else length(seconds) for seconds in (row.age_s, row.running_s)),
        row.attempt or "-",
        "-" if charged is None else charged,
        row.worker or "-",
        "-" if row.silence_s is None else length(row.silence_s),
        "-" if row.tokens_used is None else figure(row.tokens_used),
        "-" if row.cost_usd is None else figure(row.cost_usd, 4),
        output.one_line("; ".join(part for part in (row.sent_back, row.reason) if part), 60) or "-",
        output.one_line(row.last_line, 60) or "-",
    )


def _briefs(spool: SpoolClient, rows: Iterable[Located]) -> Iterator[tuple[object, ...]]:
    from spoold.client.read.task_info import brief

    now = spool.store.clock.wall()
    for located in rows:
        said = brief(spool.store, located, now)
        yield (
            located.id,
            _state(located.state.value, located.archived),
            output.one_line(said.type, 40) or "-",
            "-" if said.age_s is None else length(said.age_s),
            said.runs or "-",
        )


def _state(state: str, archived: bool) -> str:
    return f"{state} (archived)" if archived else state


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
