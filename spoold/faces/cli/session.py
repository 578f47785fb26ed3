"""What the global options said, and the spool they mean."""

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
        """The spool's directory, absolute; it may not be there. Errors: NoSpoolNamed, BadFile.

        configured is what a node's own configuration file names; option and environment go before it.
        """
        from spoold.client.location import spool_directory

        return spool_directory(self.given, configured=configured)

    def spool(self, configured: str | None = None) -> SpoolClient:
        """The spool, opened; use it in a `with`. configured: as above. Errors: Unavailable, NoSpoolNamed, BadFile."""
        from spoold.client.spool_client import SpoolClient

        return SpoolClient(self.directory(configured))


def session(ctx: typer.Context) -> Session:
    """The session of a verb."""
    found = ctx.obj
    return found if isinstance(found, Session) else Session(None)
