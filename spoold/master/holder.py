"""Whether the holder of the token of leadership is gone from this very host: then no standby need wait for its lease.

Law: only a process that was provably on this host can be found gone; in doubt it is not.
"""

from __future__ import annotations

from spoold.store import beats
from spoold.store.presence import provably_gone
from spoold.store.store import Store
from spoold.system.host import Host

EVERY_S = 1.0


class Holder:
    """Looks the holder's process up, at most once a second."""

    def __init__(self, store: Store, host: Host) -> None:
        self._store = store
        self._host = host
        self._at: float | None = None
        self._gone: dict[str, bool] = {}

    def gone(self, holder: str) -> bool:
        """Whether the holder ran on this host and its process is gone. Errors: OSError."""
        now = self._store.clock.monotonic()
        if self._at is None or now - self._at >= EVERY_S or holder not in self._gone:
            self._at = now
            beat = beats.list_beats(self._store.fs).get(holder)
            read = beats.read(self._store.fs, beat) if beat is not None else None
            self._gone = {holder: read is not None and provably_gone(read, self._host)}
        return self._gone[holder]
