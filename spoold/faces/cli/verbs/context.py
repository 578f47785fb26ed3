"""`spool context`: what the tasks of a batch share: put an entry, get it, list them all.

Law: nothing is ever overwritten. A conflict ends with exit code 1, and its words say what stands.

Touches: the terminal.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal.global_options import session
from spoold.faces.cli.terminal.output import (
    JsonOption,
    print_json,
    print_line,
    print_prose,
    print_table,
    remark,
    write_bytes,
)

if TYPE_CHECKING:
    from spoold.client.context_and_steps import Shared, SharedContext

ACTIONS = {"put": "NAME FILE", "get": "NAME", "ls": "", "log": ""}
CONFLICT = 1

EPILOG = """Example: spool context put decisions.md notes.md     (within a task of a batch)

Example: spool context put decisions.md - --if-version 3 --batch nightly

Example: spool context get decisions.md --batch nightly

Example: spool context log --batch nightly --json"""


def offer(incomplete: str) -> list[str]:
    """Return the actions that begin so, for a shell that completes a word."""
    return [action for action in ACTIONS if action.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("context", epilog=EPILOG)(context)


def context(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="One of put, get, ls, log.", autocompletion=offer)],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="NAME FILE to put (- for stdin); NAME to get.", show_default=False),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="NAME", help="Which batch; else that of the task.", show_default=False),
    ] = None,
    if_version: Annotated[
        int | None,
        typer.Option("--if-version", metavar="N", min=0, help="Put only if N counts now; 0: if there is none."),
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="Get this version, not the latest.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Share decisions, findings and interfaces among the tasks of a batch.

    An entry never changes: a put adds a new version, and the latest counts. A conflict is told, and with a condition
    that does not hold nothing is put: exit code 1. `get` prints the content, `ls` the entries that count, `log` all
    of them."""
    from spoold.client.context_and_steps import Conflict, SharedContext
    from spoold.protocol.errors import BadFile

    given = words or []
    wanted = ACTIONS.get(action)
    if wanted is None:
        raise BadFile(f"spool context {action}", "", "is no such action.", f"use one of {', '.join(ACTIONS)}.")
    if len(given) != len(wanted.split()):
        raise BadFile(f"spool context {action}", "", f"takes {wanted or 'no word'}.", "see its --help.")
    with session(ctx).spool() as spool:
        shared = SharedContext(spool, batch)
        if action == "put":
            try:
                found = shared.put(given[0], _content(given[1]), if_version=if_version)
            except Conflict as conflict:
                remark(f"conflict: {conflict}")
                raise typer.Exit(CONFLICT) from None
            _show(found, as_json)
        elif action == "get":
            _get(shared, given[0], version, as_json)
        else:
            entries = shared.current() if action == "ls" else shared.log()
            _list(shared.whole(entries) if as_json else entries, as_json)


def _content(file: str) -> bytes:
    """Read the file, or stdin. Errors: BadFile."""
    from spoold.faces.cli.terminal.values import read_file

    return read_file(file)


def _show(found: Shared, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
    else:
        print_line(str(found.version))
    _warn(found)


def _warn(found: Shared) -> None:
    if found.conflicts:
        versions = ", ".join(map(str, found.conflicts))
        remark(f"warning: {found.name} was put without knowledge of version {versions}: get both, merge, put again")


def _get(shared: SharedContext, name: str, version: int | None, as_json: bool) -> None:
    found, data = shared.get(name, version)
    if as_json:
        print_json({**asdict(found), "content": data.decode(errors="replace")})
    else:
        write_bytes(data)
    _warn(found)


def _list(found: list[Shared], as_json: bool) -> None:
    if as_json:
        print_json([asdict(each) for each in found])
    elif not found:
        print_prose("nothing is shared")
    else:
        rows = [
            (
                each.name,
                str(each.version),
                str(each.base or "-"),
                each.node,
                ", ".join(map(str, each.conflicts)) or "-",
            )
            for each in found
        ]
        print_table(("NAME", "VERSION", "AFTER", "FROM", "CONFLICT"), rows)
