"""Which other tasks changed the same files at the same time, of an attempt whose result says what it changed.

Law: an attempt that lists no `changed_files` costs nothing here. Of two that overlap, the one that commits later says
so: each first writes into its journal what it changed, and then reads what the others wrote. It is a remark for
people: a journal that cannot be read or written flags nothing, and stops nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.names import EventsName, parse_events
from spoold.rules.locks.touched import CHANGED, Touched, common, touched_in
from spoold.store.journal import Journal
from spoold.store.store import Store
from spoold.worker.attempts.attempt import Attempt

# So much (bytes) of the end of each journal is read.
TAIL_BYTES = 1 << 20
# A journal that was last written so long (s) before the attempt began is not read.
STALE_S = 600.0


class Overlaps:
    """Finds them for one worker, each attempt once."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._found: dict[str, tuple[dict[str, Any], ...]] = {}

    def of(self, attempt: Attempt, files: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
        """Return the attempts that overlap with this one, each with the files: as in a result."""
        if not files or attempt.ending is None:
            return ()
        if attempt.key not in self._found:
            # The pool's time: the clocks of two workers may differ.
            ended = self._store.common.wall()
            began = ended - attempt.ending.duration_s - attempt.ending.frozen_s
            mine = Touched(attempt.name.id, attempt.name.attempt, began, ended, files)
            self._journal.note(CHANGED, mine.task, mine.attempt, began=began, ended=ended, files=files)
            self._journal.flush(last=True)
            self._found[attempt.key] = common(mine, self._others(began))
        return self._found[attempt.key]

    def committed(self, attempt: Attempt) -> None:
        """Tell the journal of overlaps, once the attempt is committed."""
        if found := self._found.pop(attempt.key, ()):
            self._journal.note("FILES_OVERLAP", attempt.name.id, attempt.name.attempt, overlaps=found)

    def forget(self, attempt: Attempt) -> None:
        """Forget an attempt that is not committed."""
        self._found.pop(attempt.key, None)

    def _others(self, began: float) -> Iterator[Touched]:
        with contextlib.suppress(OSError):
            names = sorted(name for name in map(parse_events, self._store.fs.list(layout.EVENTS)) if name is not None)
            newest = {name.writer: name for name in names}
            for name in newest.values():
                found: list[Touched] = []
                with self._store.faults.handling("journal", name.encode()):
                    found += self._read(name, began)
                yield from found

    def _read(self, name: EventsName, began: float) -> Iterator[Touched]:
        """What a journal tells, unless it was last written long before that moment: dead nodes leave many."""
        path = layout.join(layout.EVENTS, name.encode())
        data = b""
        with contextlib.suppress(OSError):
            seen = self._store.fs.stat(path)
            if seen.mtime_ns / 1e9 > began - STALE_S:
                data = self._store.fs.read(path, offset=max(0, seen.size - TAIL_BYTES))
        for line in data.splitlines():
            if CHANGED.encode() in line:
                touched = None
                with self._store.faults.handling("line of journal", name.encode()), contextlib.suppress(BadFile):
                    touched = touched_in(codec.load(line, path))
                if touched is not None:
                    yield touched
