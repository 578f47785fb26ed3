"""`spool workers`: every node that beats, or has stopped.

Law: every node that the client knows of is shown, also a dead one; the client decides which are dead.

Touches: the terminal.
"""

from __future__ import annotations

import typer

from spoold.faces.cli.nodes import columns, node_row
from spoold.faces.cli.output import JsonOption, print_json, print_line, print_prose, print_table, sentence
from spoold.faces.cli.session import session

EPILOG = """Example: spool workers

Example: spool workers --json"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("workers", epilog=EPILOG)(workers)


def workers(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Show all workers and masters; the silent ones are called dead, but for those who said that they go to sleep."""
    with session(ctx).spool() as spool:
        found = spool.roster()
    if as_json:
        print_json(found)
        return
    if found.workers:
        print_table(columns(), [node_row(node) for node in found.workers])
        for node in found.workers:
            for note in node.notes:
                print_prose(f"{node.worker}: {sentence(note)}", "  ")
    else:
        print_prose("no workers; `spool worker` or `spool up` starts one")
    print_line("")
    if found.masters:
        print_table(("MASTER", "HOST", "STATE"), [(post.node, post.host, post.state) for post in found.masters])
    else:
        print_prose("no masters; `spool master` or `spool up` starts one")
