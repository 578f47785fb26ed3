"""`spool reserve` and `spool locks`: who holds what, and who waits.

Law: a reservation that is not granted is given back: by --no-wait, when the time is over, and at an interrupt.

Touches: the terminal.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from spoold.faces.cli.terminal import output
from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import JsonOption

RESERVE_EPILOG = """Example: spool reserve 'src/api/**' repo:main --ttl 30m --reason 'I rebase by hand'

Example: spool reserve --read docs/ --no-wait"""
LOCKS_EPILOG = """Example: spool locks

Example: spool locks --json"""

Patterns = Annotated[
    list[str],
    typer.Argument(metavar="PATTERN", help="Paths, names, or patterns with *, ? and **; docs/ is all below it."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("reserve", epilog=RESERVE_EPILOG)(reserve)
    app.command("locks", epilog=LOCKS_EPILOG)(locks)


def reserve(
    ctx: typer.Context,
    patterns: Patterns,
    read: Annotated[bool, typer.Option("--read", help="Only to read: others may read it, too.")] = False,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="TIME", help="It ends by itself after so long: 90s, 5m, 2h.")
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Fail if others still hold some of it.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than so long for others to end.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; locks and explain say it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Keep tasks away from what you work on.

    Nothing that conflicts begins from now on; this waits until nothing that conflicts runs any more, and prints the
    name of the reservation. It ends with its time, or `spool release`; within a task, with the attempt at the
    latest."""
    from spoold.faces.cli.terminal import values

    length_s = None if ttl is None else values.duration(ttl, "--ttl")
    limit_s = None if timeout is None else values.duration(timeout, "--timeout")
    given: dict[str, Any] = {"read": patterns} if read else {"write": patterns}
    with session(ctx).spool() as spool:
        found = spool.reserve(ttl_s=length_s, wait=not no_wait, timeout=limit_s, reason=reason, **given)
    if as_json:
        output.print_json(found)
    elif found.granted:
        output.print_line(found.name)
        output.remark(f"reserved until {found.until} or `spool release {found.name}`")
    if not found.granted:
        output.remark(f"not free: {found.behind} holds some of it; `spool locks` shows more")
        raise typer.Exit(1)


def locks(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Show who holds locks, and who waits for them.

    Tasks hold their locks while they are ready or run. Of tasks that lock the same, the first one is shown."""
    with session(ctx).spool() as spool:
        found = spool.locks()
    if as_json:
        output.print_json(found)
        return
    if not found["holders"] and not found["waiters"]:
        output.print_prose("no task holds a lock, or waits for one")
        return
    output.print_table(("HELD BY", "LOCKS"), [(row["told"], row["locks"]) for row in found["holders"]])
    if found["waiters"]:
        output.print_line("")
        fields = ("task", "tasks", "position", "told", "locks")
        rows = [[row.get(field, "") for field in fields] for row in found["waiters"]]
        output.print_table(("WAITS", "TASKS", "IN LINE", "BEHIND", "LOCKS"), rows)
