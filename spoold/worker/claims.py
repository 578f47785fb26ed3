"""claimed/<me>/: what is mine, as the share shows it.

Law: what is listed there is this worker's own, whether or not its rename was seen to succeed; what is no longer there
is not. A directory that is gone from claimed/ means that this worker was taken for dead.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.store.looks import Looks
from spoold.store.store import Store

_LOOK = "claims"
# How often (s) a look is due where it costs a round trip: while tasks run, and while none does; and at least so many
# times per heartbeat interval while tasks run.
EVERY_S, IDLE_S, TIMES = 1.0, 2.0, 5


class Claims:
    """Looks at one worker's claim directory, as often as need be."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looks = Looks(store)
        self._every_s = min(EVERY_S, store.settings.heartbeat.interval_s / TIMES)
        self._directory = layout.join(layout.CLAIMED, store.writer)

    def due(self, *, working: bool) -> bool:
        """Whether to look in this step."""
        return self._looks.due(_LOOK, self._every_s if working else IDLE_S)

    def doubt(self) -> None:
        """A move into it or out of it ended nobody knows how: look in the next step."""
        self._looks.hasten(_LOOK)

    def list(self) -> set[str]:
        """The names of my tokens. Errors: OSError, ShutOut."""
        try:
            return set(self._store.fs.list(self._directory))
        except FileNotFoundError:
            self._store.check_kept(layout.CLAIMED)
            raise
