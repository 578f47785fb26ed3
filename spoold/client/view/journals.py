"""The events of all journals: those of before in the background, new ones from where the last look ended.

Law: of the past no more than PIECE is held at a time. The last KEPT events are kept for people.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spoold.protocol import layout
from spoold.protocol.event import Event
from spoold.protocol.names import key, parse_events
from spoold.store.journal import Reader, parse_lines
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file

KEPT, PIECE = 2000, 1 << 20


@dataclass(frozen=True, slots=True)
class Noted:
    """One event, with its number in the order in which the view read it, from 1. at: RFC 3339, the writer's clock."""

    number: int
    at: str
    writer: str
    event: str
    task: str
    attempt: int | None
    detail: dict[str, Any]


class Journals:
    """Follows all journals from the moment of `begin` on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(store.fs)
        self._ends: dict[str, int] = {}
        self._last: deque[Noted] = deque(maxlen=KEPT)
        self._number = 0

    def begin(self) -> None:
        """What is written so far is history; what comes now is news. Errors: OSError."""
        self._reader.skip()
        self._ends = dict(self._reader.offsets)

    def history(self) -> Iterator[Event]:
        """Yield what was written before `begin`, journal after journal. Errors: OSError."""
        for name, end in sorted(self._ends.items()):
            begin, journal = 0, parse_events(name)
            while begin < end:
                data = self._piece(layout.join(layout.EVENTS, name), begin, end)
                whole = data.rfind(b"\n") + 1
                # A line that is longer than a piece is passed over with the rest of its journal.
                if not whole:
                    break
                yield from parse_lines(data[:whole], writer=journal.writer if journal is not None else "")
                begin += whole
        self._ends.clear()

    def _piece(self, path: str, begin: int, end: int) -> bytes:
        try:
            return self._store.fs.read(path, min(PIECE, end - begin), offset=begin)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                raise
            return b""

    def news(self, writers: Collection[str] | None) -> list[Event]:
        """Return the events since the last call. writers: as for `Reader.read`. Errors: OSError."""
        return self._reader.read(writers)

    def keep(self, events: Iterable[Event]) -> None:
        """Keep these for people, in this order: the last of all are kept."""
        for event in events:
            self._number += 1
            said = event.detail if isinstance(event.detail, dict) else {}
            task = event.task or ""
            self._last.append(Noted(self._number, event.at, event.writer, event.event, task, event.attempt, said))

    def last(self, after: int, task: str, most: int) -> list[Noted]:
        """Return at most so many of the last events, oldest first. task: those of this task alone, '' for all."""
        fitting = [
            noted for noted in self._last if noted.number > after and (not task or key(noted.task) == key(task))
        ]
        return fitting[-most:]
