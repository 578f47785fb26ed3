"""What alerts go by and the listings do not show by themselves: the room on the share, and how attempts ended.

Law: the share is asked for its room once in EVERY_S at most. While it is full no drop is
admitted. May touch: the share's free room.
"""

from __future__ import annotations

from spoold.protocol.alert_settings import AlertSettings
from spoold.protocol.lanes import kind_in
from spoold.rules.alerts.recent import Outcomes
from spoold.rules.share import disk
from spoold.store.store import Store
from spoold.system.filesystem import Usage

# How often (s) the share is asked for its room: a round trip, where it is on a server.
EVERY_S = 1.0


def counts(lane: str | None, by: AlertSettings) -> bool:
    """Return whether attempts of tasks of this lane count: those that tell of alerts do not, or one that fails would
    raise the next alert."""
    return by.kind is None or lane is None or kind_in(lane) != by.kind


class Health:
    """The health of a spool as one leader sees it. Times are monotonic, in seconds.

    outcomes: of the attempts that ended; shortage: why drops are not admitted, None if they are, as far as that was
    asked.
    """

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self.shortage: str | None = None
        self._usage: Usage | None = None
        self._asked_at = 0.0

    def space(self, store: Store, now: float) -> Usage:
        """Return the room on the share, as it was a second ago at the earliest. Errors: OSError."""
        if self._usage is None or now - self._asked_at >= EVERY_S:
            self._usage, self._asked_at = store.fs.usage(), now
        return self._usage

    def admits(self, store: Store, now: float) -> bool:
        """Return whether there is room for new tasks. Errors: OSError."""
        usage = self.space(store, now)
        found = disk.room(usage.total_bytes, usage.free_bytes, usage.free_inodes, store.basics)
        self.shortage = f"{found.value}: no drop is admitted; {found.mend}" if found.full else None
        return not self.closed

    @property
    def closed(self) -> bool:
        """Whether drops are not admitted, as far as that was asked."""
        return self.shortage is not None

    def failed(self, task_key: str, lane: str | None, by: AlertSettings, now: float, *, ran: bool) -> None:
        """Note that the leader failed a task. ran: it was an attempt that ended so, and not a task that waited."""
        self.outcomes.ended(now, task_key, failed=True if ran and counts(lane, by) else None)

    def next_due(self) -> float | None:
        """When (monotonic, s) to ask again whether drops are admitted; None while they are."""
        return self._asked_at + EVERY_S if self.closed else None

    def warnings(self, store: Store, now: float) -> list[str]:
        """Return the warnings about the room on the share. Errors: OSError."""
        usage = self.space(store, now)
        found = disk.warnings(usage.total_bytes, usage.free_bytes, usage.free_inodes, store.basics)
        return [disk.READ_ONLY, *found] if usage.read_only else found
