"""For how long the logs of what runs have not grown.

Law: looks and never touches, and only while somebody wants to know. A client of NFS may hold an old answer for up to
a minute, so a figure may be that much too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice

from spoold.protocol import layout
from spoold.protocol.errors import BadName
from spoold.protocol.names import EndedName, key
from spoold.store.store import Store

# Who asked within so many seconds still wants to know.
WANTED_S = 10.0
# How many logs are looked at in one look on a share.
LOOKS = 2


class Quiet:
    """When each log changed last, by the file server's clock; `since` is compared with this machine's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted_at = float("-inf")
        self._changed: dict[tuple[str, int], float] = {}
        self._turn = 0

    def want(self) -> None:
        """Somebody asks."""
        self._wanted_at = self._store.clock.monotonic()

    def look(self, running: Iterable[tuple[str, int, str]], remote: bool) -> None:
        """Look at the logs of these attempts; on a share at a few of them in turn. Errors: none."""
        if self._store.clock.monotonic() - self._wanted_at > WANTED_S:
            return
        now = list(running)
        names = {(key(task), attempt) for task, attempt, _ in now}
        self._changed = {name: at for name, at in self._changed.items() if name in names}
        some = now
        if remote and len(now) > LOOKS:
            some = list(islice(cycle(now), self._turn, self._turn + LOOKS))
            self._turn = (self._turn + LOOKS) % len(now)
        for task, attempt, worker in some:
            try:
                path = layout.join(layout.LOGS, EndedName(task, attempt, worker).log())
                self._changed[key(task), attempt] = self._store.fs.stat(path).mtime_ns / 1e9
            except (OSError, BadName):
                continue  # it has written nothing yet

    def seconds(self) -> dict[tuple[str, int], float]:
        """For how long (s) each log has not grown."""
        now = self._store.clock.wall()
        return {name: max(0.0, now - at) for name, at in self._changed.items()}
