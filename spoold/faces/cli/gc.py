"""`spool gc`: retention, now.

Law: it only posts a request, and does not wait until the leader has carried it out.

Touches: the terminal.
"""

from __future__ import annotations

import typer

from spoold.faces.cli import output
from spoold.faces.cli.session import session

EPILOG = """Example: spool gc"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("gc", epilog=EPILOG)(gc)


def gc(ctx: typer.Context) -> None:
    """Archive every ended task now.

    And delete old archived tasks."""
    with session(ctx).spool() as spool:
        spool.gc()
    output.remark("the leader will archive ended tasks; `spool ls --all` shows the archive")
