"""Which look at the share is due: how often each directory is listed.

Where a server holds the files, every look is a round trip that it makes for everybody, so each kind of look has its
own measure of time. Where the files are local a look is nearly free, and all are due at every step.

A look is one or two requests over NFS and five over SMB (the spool and the directory are asked about, and the listing
is asked for twice and closed), so there what only hastens things is looked at half as often.

Law: a look that is put off may delay a decision and never makes one wrong, since every decision is a rename that
fails when things have changed.
"""

from __future__ import annotations

from spoold.store.store import Store

DEAR = 2.0
# Where looks are dear, a node that has had nothing to do for so long (s) takes even fewer.
AT_REST_S = 60.0


class Polling:
    """One node's looks, by name. Times in seconds on its monotonic clock.

    dear: by how much longer to wait between two looks that only hasten things; never between those by which others
    are judged, or by which a node judges itself.
    """

    def __init__(self, store: Store) -> None:
        self._fs = store.fs
        self._clock = store.clock
        self._taken: dict[str, float] = {}
        self._active_at = self._clock.monotonic()

    @property
    def rationed(self) -> bool:
        """Whether a look costs something. A share may be mounted under a node that runs."""
        return self._fs.remote

    @property
    def dear(self) -> float:
        """By how much longer to wait between two looks that only hasten things."""
        return DEAR if self._fs.forgets else 1.0

    def active(self) -> None:
        """There is something to do: looks are as frequent as they get."""
        self._active_at = self._clock.monotonic()

    @property
    def slow(self) -> float:
        """By how much longer yet to wait at rest."""
        return self.dear if self._clock.monotonic() - self._active_at > AT_REST_S else 1.0

    def take(self, look: str, every_s: float, local_s: float = 0.0) -> bool:
        """Whether to look now; then it counts as taken, whatever comes of it.

        local_s: how often where files are local, for a look that costs something there, too.
        """
        every_s = every_s if self.rationed else local_s
        now = self._clock.monotonic()
        taken = self._taken.get(look)
        if taken is not None and now - taken < every_s:
            return False
        self._taken[look] = now
        return True

    def next_due(self, look: str, every_s: float) -> float:
        """When (monotonic, s) a look that is taken this often is due."""
        taken = self._taken.get(look)
        return self._clock.monotonic() if taken is None else taken + every_s

    def hasten(self, look: str) -> None:
        """Something happened: the look is due at once."""
        self._taken.pop(look, None)
