"""The leader's snapshot, as it publishes one after the other; where no leader lives, a picture made by listing.

Law: a new snapshot is believed as it comes. Whether its leader still lives is only asked when none has come for
some intervals, since that costs more than a dozen round trips.
"""

from __future__ import annotations

from spoold.client.pauses import with_pauses
from spoold.client.status import status
from spoold.protocol import layout
from spoold.protocol.names import SnapshotName
from spoold.protocol.plain import picture
from spoold.protocol.snapshot import Snapshot
from spoold.store import snapshots
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.host import Host

# A leader publishes every interval, on a share every other one: so many of them without news, and it is asked for.
SILENT, SILENT_SHARE = 2.0, 4.0


class Pictures:
    """The last picture. alike: whether only figures of machines differ from the one before."""

    def __init__(self, store: Store, host: Host) -> None:
        self._store, self._host = store, host
        self._name: SnapshotName | None = None
        self._news_at = float("-inf")
        self._asked_at = float("-inf")
        self.last: Snapshot | None = None

    @property
    def led(self) -> bool:
        """Whether the picture is a leader's."""
        return self.last is not None and self.last.source == "leader"

    def look(self) -> bool:
        """Take up a new snapshot; True if there was one. Errors: OSError."""
        names = snapshots.list_snapshots(self._store.fs)
        now = self._store.clock.monotonic()
        newest = names[0] if names else None
        if newest is not None and (self._name is None or newest > self._name):
            self._name = newest
            if self.last is not None and self._take(newest):
                self._news_at = now
                return True
        intervals = SILENT_SHARE if self._store.fs.remote else SILENT
        patience_s = max(1.0, intervals * self._store.basics.interval_s)
        # What a leader has just published is believed for a while: it is asked for again before long.
        waits = now - self._news_at < patience_s or now - self._asked_at < patience_s / 2
        if waits and self.last is not None:
            return False
        return self._ask()

    def _take(self, name: SnapshotName) -> bool:
        path = layout.join(layout.STATUS, name.encode())
        try:
            found = picture.load_snapshot(self._store.fs.read(path), path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                raise
            return False
        except ValueError:
            return False
        self._show(found)
        return True

    def _ask(self) -> bool:
        """Find out who leads. Takes some seconds where nobody does."""
        before = self.last
        found = status(self._store, self._host, self._store.clock, plainly=True)
        self._asked_at = self._store.clock.monotonic()
        self._show(found)
        return before is None or _told(before) != _told(found)

    def _show(self, found: Snapshot) -> None:
        self.last = with_pauses(self._store, found)


def _told(found: Snapshot) -> tuple[object, ...]:
    return found.source, found.master, found.tasks, found.warnings, found.nodes
