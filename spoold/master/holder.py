"""Whether the holder of the token of leadership is gone from this very host: then no standby need wait for its lease.

Law: only a process that was provably on this host can be found gone; on a share, only while it does not beat,
or where it left a trace on this machine.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.store import beats
from spoold.store.predecessors import Standstill
from spoold.store.presence import provably_gone
from spoold.store.store import Store
from spoold.system.host import Host

EVERY_S = 1.0


class Holder:
    """Looks the holder's process up, at most once a second."""

    def __init__(self, store: Store, host: Host, left: Collection[str] = ()) -> None:
        """left: the nodes whose traces were found on this machine."""
        self._left = left
        self._store = store
        self._host = host
        self._at: float | None = None
        self._gone: dict[str, bool] = {}
        self._standstill = Standstill(store, host)

    def gone(self, holder: str) -> bool:
        """Whether the holder ran on this host and its process is gone. Errors: OSError."""
        now = self._store.clock.monotonic()
        if self._at is None or now - self._at >= EVERY_S or holder not in self._gone:
            self._at = now
            beat = beats.list_beats(self._store.fs).get(holder)
            read = beats.read(self._store.fs, beat) if beat is not None else None
            missing = (
                {} if beat is None or read is None or not provably_gone(read, self._host) else {holder: beat.beat}
            )
            gone = [node for node in missing if node in self._left] or self._standstill.gone(missing, now)
            self._gone = {holder: holder in gone}
        return self._gone[holder]
