"""How a program holds many tasks back: pauses of types, and limits that are closed.

Law: a pause and a closed limit stand until they are lifted, or until the moment that was named for them.
"""

from __future__ import annotations

from datetime import datetime

from spoold.client import pauses
from spoold.client.connection import Connection
from spoold.protocol.request import Verb, kind_target


class Pausing(Connection):
    """Types and limits of an open spool."""

    def pause(
        self,
        kind: str | None = None,
        *,
        reason: str = "",
        until: datetime | None = None,
        for_s: float | None = None,
    ) -> datetime | None:
        """Start no more tasks of a type, or of any; running tasks go on. A pause ends with a resume, or at a moment.

        until: with a zone; for_s: in so many seconds. Returns the end, or None. Errors: BadName; SpoolError if past.
        """
        target, end = kind_target(kind), pauses.end_of(until, for_s, self.pool_time)
        self.post(Verb.PAUSE, target, reason, until=end)
        return end

    def resume(self, kind: str | None = None, *, reason: str = "") -> None:
        """Take back a pause; without a type every pause, and a halt. Errors: BadName for an invalid type."""
        self.post(Verb.RESUME, kind_target(kind), reason)

    def close_limit(
        self, name: str, *, reason: str = "", until: datetime | None = None, for_s: float | None = None
    ) -> datetime | None:
        """Start no more tasks that use a limit; running tasks go on. until, for_s and the answer as for `pause`.

        Errors: BadFile for a limit that spool.toml does not name; SpoolError if the end is past.
        """
        from spoold.client import limits

        with self.reaching():
            target = limits.limit_named(name, self.store.settings)
        end = pauses.end_of(until, for_s, self.pool_time)
        self.post(Verb.CLOSE, target, reason, until=end)
        return end

    def open_limit(self, name: str, *, reason: str = "") -> None:
        """Open a limit again, also one that a quota closed. Errors: BadName for what cannot be a limit."""
        self.post(Verb.OPEN, kind_target(name), reason)
