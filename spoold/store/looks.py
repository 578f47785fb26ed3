"""Which look at the share is due: how often each directory is listed.

Where a server holds the files, every look is a round trip that it makes for everybody, so each kind of look has its
own measure of time. Where the files are local a look is nearly free, and all are due at every step.

Law: a look that is put off may delay a decision and never makes one wrong, since every decision is a rename that
fails when things have changed.
"""

from __future__ import annotations

from spoold.store.store import Store


class Looks:
    """One node's looks, by name. Times in seconds on its monotonic clock."""

    def __init__(self, store: Store) -> None:
        self.rationed = store.fs.remote
        self._clock = store.clock
        self._taken: dict[str, float] = {}

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
