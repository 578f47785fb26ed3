"""`spool workspace`: the workspaces of agents on this machine.

Law: `ls` and `open` look and never touch. `gc` removes only what the remote of a repository has whole.

Touches: the terminal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal.output import JsonOption, print_exactly, print_json, print_prose, print_table, remark
from spoold.faces.cli.terminal.values import duration
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.agents.workspace.workspace_layout import Places

UNSAVED = 1

EPILOG = """Example: spool workspace ls

Example: ls "$(spool workspace open edit-1)"

Example: spool workspace gc --keep 1h"""

Words = Annotated[
    list[str], typer.Argument(metavar="ls|open|gc [TASK]", help="What to do; `open` needs the id of a task.")
]
Dir = Annotated[
    str | None, typer.Option("--dir", metavar="DIR", help="Where they lie; by default in this user's cache.")
]
Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TIME", help="gc: how long to keep them; else as the profiles say.")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("workspace", epilog=EPILOG)(workspace)


def workspace(words: Words, directory: Dir = None, keep: Keep = None, as_json: JsonOption = False) -> None:
    """List the workspaces of agents on this machine, find one, or remove what may go.

    `ls` lists them. `open TASK` prints the directory of the newest one of a task. `gc` pushes what killed attempts
    left, says so, and then removes the workspaces that ended long enough ago and of which the remote has everything.
    Exit code 1 where one stays since the remote was not seen to have all of its work."""
    from spoold.agents.workspace.workspace_layout import Places
    from spoold.protocol.errors import BadFile

    action, rest = words[0], words[1:]
    if action not in ("ls", "open", "gc") or len(rest) != (action == "open"):
        fix = "write `spool workspace ls`, `spool workspace open TASK` or `spool workspace gc`."
        raise BadFile("the command line", "", "is no such action.", fix)
    if keep is not None and action != "gc":
        raise BadFile("the command line", "--keep", "belongs to gc.", "leave it out.")
    where = Places(None if directory is None else os.path.abspath(directory))
    if action == "ls":
        _list(where, as_json=as_json)
    elif action == "open":
        _open(where, rest[0], as_json=as_json)
    else:
        _collect(where, None if keep is None else duration(keep, "--keep"), as_json=as_json)


def _list(where: Places, *, as_json: bool) -> None:
    from spoold.agents.workspace.workspace_retention import list_workspaces

    found = list_workspaces(where)
    if as_json:
        print_json(found)
    elif not found:
        print_prose(f"no workspaces in {where.top}")
    else:
        columns = ("TASK", "ATTEMPT", "PROFILE", "STATE", "SINCE", "REFERENCE", "DIRECTORY")
        rows = [(one.task, one.attempt, one.profile, one.state, one.since, one.ref, one.directory) for one in found]
        print_table(columns, [[str(cell) or "-" for cell in row] for row in rows])


def _open(where: Places, task: str, *, as_json: bool) -> None:
    from spoold.agents.workspace.workspace_retention import find

    found = find(where, task)
    print_json(found) if as_json else print_exactly(found.directory)


def _collect(where: Places, keep_s: float | None, *, as_json: bool) -> None:
    from spoold.agents.workspace.attempt_workspace import collect

    judged = collect(where, keep_s)
    unsaved = [one for one in judged if one.unsaved]
    if as_json:
        print_json(judged)
    else:
        for one in judged:
            for ref in one.pushed:
                remark(f"pushed {ref} of {one.task} to {one.repo}")
            remark(f"{'removed' if one.removed else 'kept'} {one.task or one.folder}: {one.why}")
        if not judged:
            print_prose(f"no workspaces in {where.top}")
    if unsaved:
        stay = "stays" if len(unsaved) == 1 else "stay"
        remark(f"{amount(len(unsaved), 'workspace')} {stay}: the remote was not seen to have all of the work there")
        raise typer.Exit(UNSAVED)
