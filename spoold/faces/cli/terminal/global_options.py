"""The values of the global options, and their spool.

Law: `client.spool.location` alone decides which directory is meant: the option is passed on, and has no default here.

Touches: the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient


class Session:
    """One run of the command. debug: log everything, show tracebacks."""

    def __init__(self, given: str | None, *, debug: bool = False) -> None:
        self.given = given
        self.debug = debug

    def directory(self, configured: str | None = None) -> str:
        """Return the spool's directory, absolute; it may not exist. Errors: NoSpoolNamed, BadFile.

        configured: the directory in a node's own configuration file; option and environment go before it.
        """
        from spoold.client.spool.location import spool_directory

        return spool_directory(self.given, configured=configured)

    def spool(self, configured: str | None = None) -> SpoolClient:
        """Open the spool; use it in a `with`. configured: as above. Errors: Unavailable, NoSpoolNamed, BadFile."""
        from spoold.client.spool_client import SpoolClient

        return SpoolClient(self.directory(configured))


def session(ctx: typer.Context) -> Session:
    """Return the session of a verb."""
    found = ctx.obj
    return found if isinstance(found, Session) else Session(None)
