"""For how long what runs has said nothing: neither has its log grown, nor its own report changed.

Law: looks and never touches, and at logs only while somebody wants to know. A client of NFS may hold an old answer
for up to a minute, so a figure may be that much too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

from spoold.protocol import layout
from spoold.protocol.errors import BadName
from spoold.protocol.names import EndedName, key
from spoold.store.store import Store

# Who asked within so many seconds still wants to know.
WANTED_S = 10.0
# How many logs are looked at in one look on a share.
LOOKS = 2


Running = tuple[str, int, str, Any]


class Quiet:
    """When each log changed last, by the file server's clock, and when each report did, by this machine's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted_at = float("-inf")
        self._changed: dict[tuple[str, int], float] = {}
        self._reports: dict[tuple[str, int], tuple[Any, float]] = {}
        self._turn = 0

    def want(self) -> None:
        """Somebody asks."""
        self._wanted_at = self._store.clock.monotonic()

    def look(self, running: Iterable[Running], remote: bool) -> None:
        """Look at the logs of these attempts (id, number, worker, report); on a share at a few of them in turn.

        Errors: none.
        """
        now = list(running)
        self._hear(now)
        if self._store.clock.monotonic() - self._wanted_at > WANTED_S:
            return
        names = {(key(task), attempt) for task, attempt, _, _ in now}
        self._changed = {name: at for name, at in self._changed.items() if name in names}
        some = now
        if remote and len(now) > LOOKS:
            some = list(islice(cycle(now), self._turn, self._turn + LOOKS))
            self._turn = (self._turn + LOOKS) % len(now)
        for task, attempt, worker, _ in some:
            try:
                path = layout.join(layout.LOGS, EndedName(task, attempt, worker).log())
                self._changed[key(task), attempt] = self._store.fs.stat(path).mtime_ns / 1e9
            except (OSError, BadName):
                continue  # it has written nothing yet

    def _hear(self, running: Iterable[Running]) -> None:
        """Note whose report has changed. One that is met for the first time says nothing about when."""
        before, now = self._reports, self._store.clock.wall()
        self._reports = {}
        for task, attempt, _, report in running:
            name = (key(task), attempt)
            said, at = before.get(name, (report, float("-inf")))
            self._reports[name] = (report, at if said == report else now)

    def seconds(self) -> dict[tuple[str, int], float]:
        """For how long (s) each has said nothing; those that are not known are left out."""
        now = self._store.clock.wall()
        told = {name: at for name, (_, at) in self._reports.items() if at > float("-inf")}
        names = self._changed.keys() | told.keys()
        return {name: max(0.0, now - max(self._changed.get(name, 0.0), told.get(name, 0.0))) for name in names}
