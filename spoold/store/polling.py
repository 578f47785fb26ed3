"""When each look at the share is due: how often each directory is listed.

If a server holds the files, every look is a round trip that competes with all other nodes, so each kind of look has
its own interval. If the files are local a look is nearly free, and all are due at every step.

A look is one or two requests over NFS and five over SMB (two queries for the spool and the directory, two for the
listing, one to close). So on SMB, looks that only speed things up are half as often.

Law: a look that is put off may delay a decision and never makes one wrong, since every decision is a rename that
fails when things have changed.
"""

from __future__ import annotations

from spoold.store.store import Store

DEAR = 2.0
# On mounts where looks are dear, a node that was idle for so long (s) looks even less often.
AT_REST_S = 60.0


class Polling:
    """One node's looks, by name. Times in seconds on its monotonic clock.

    dear: the factor between two looks that only speed things up; never for those by which a node judges others or
    itself.
    """

    def __init__(self, store: Store) -> None:
        self._fs = store.fs
        self._clock = store.clock
        self._taken: dict[str, float] = {}
        self._active_at = self._clock.monotonic()

    @property
    def rationed(self) -> bool:
        """Whether a look costs something. A share may be mounted while a node runs."""
        return self._fs.remote

    @property
    def dear(self) -> float:
        """The factor on the wait between two looks that only speed things up."""
        return DEAR if self._fs.forgets else 1.0

    def active(self) -> None:
        """There is work to do: look as often as allowed."""
        self._active_at = self._clock.monotonic()

    @property
    def slow(self) -> float:
        """The additional factor on that wait at rest."""
        return self.dear if self._clock.monotonic() - self._active_at > AT_REST_S else 1.0

    def take(self, look: str, every_s: float, local_s: float = 0.0) -> bool:
        """Whether to look now; then it counts as taken, whatever its outcome.

        local_s: the interval if files are local, for a look that costs something there, too.
        """
        every_s = every_s if self.rationed else local_s
        now = self._clock.monotonic()
        taken = self._taken.get(look)
        if taken is not None and now - taken < every_s:
            return False
        self._taken[look] = now
        return True

    def next_due(self, look: str, every_s: float) -> float:
        """When (monotonic, s) a look with this interval is due."""
        taken = self._taken.get(look)
        return self._clock.monotonic() if taken is None else taken + every_s

    def hasten(self, look: str) -> None:
        """Make the look due at once, after an event."""
        self._taken.pop(look, None)
