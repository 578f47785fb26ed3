"""Events: one file per writer, appended in batches; for people and tools.

Law: a journal is never the truth. One that cannot be written never stops a task: only history is lost, and a master
says so in its heartbeat. A journal belongs to the writer in its file's name: a line there that names another one is
shown as what it is, with the name that it gives.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.event import Event
from spoold.protocol.names import EventsName, key, parse_events
from spoold.store.step_timing import Polling
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import FileSystem

log = logging.getLogger("spoold")

SEGMENT_BYTES = 8 << 20
HELD_BACK_LINES = 10_000
# Bytes of a line that is read: one that lists 1,000 files of 500 characters has 2 MB.
LINE_MAX = 4 << 20
# On a share each append costs several round trips: events of this time (s) are appended together.
GATHER_S = 1.0


class Journal:
    """This writer's events. `note` is cheap; `flush` appends all noted events in one write."""

    def __init__(self, store: Store, epoch: int | None = None) -> None:
        self._store = store
        self.epoch = epoch
        self._seq = 0
        self._cut_short = False
        self._segment = 0
        self._size = 0
        self._lines: list[bytes] = []
        self._polling = Polling(store)
        self.lost = 0

    def note(self, event: str, task: str | None = None, attempt: int | None = None, **detail: Any) -> None:
        """Keep an event for the next flush."""
        self._seq += 1
        line: dict[str, Any] = {
            "at": self._store.stamp(),
            "writer": self._store.writer,
            "seq": self._seq,
            "event": event,
        }
        if task is not None:
            line["task"] = task
        if attempt is not None:
            line["attempt"] = attempt
        if self.epoch is not None:
            line["epoch"] = self.epoch
        if detail:
            line["detail"] = detail
        log.debug("%s %s %s", event, task or "", detail or "")
        try:
            data = orjson.dumps(line, default=str)
        except TypeError:
            data = codec.dump(line)  # a task's words may not be UTF-8
        self._lines.append(data + b"\n")

    def flush(self, *, last: bool = False) -> None:
        """Append the noted events, on a share once a second; `last`: at once, since no flush will follow.

        Never raises OSError: events are held back for the next flush, up to a bound.
        """
        if not self._lines or not (self._polling.take("journal", GATHER_S * self._polling.dear) or last):
            return
        # A failed append may have left a piece of a line: it must not spoil the next.
        data = b"".join([b"\n"] * self._cut_short + self._lines)
        name = EventsName(self._store.writer, self._segment).encode()
        try:
            self._store.fs.append(layout.join(layout.EVENTS, name), data)
        except OSError:
            self._cut_short = True
            self.lost += max(0, len(self._lines) - HELD_BACK_LINES)
            self._lines = self._lines[-HELD_BACK_LINES:]
            return
        self._cut_short = False
        self._lines.clear()
        self._size += len(data)
        if self._size > SEGMENT_BYTES:
            self._segment, self._size = self._segment + 1, 0


class Reader:
    """Follows all journals of a spool; each `read` returns the events since the last one.

    offsets: how much (bytes) of each file was read; None: start at the beginning. about: an id that a line must
    contain to be parsed at all, '' for every line; tasks: the keys of the tasks whose events are wanted, None for all
    events.
    """

    def __init__(
        self,
        fs: FileSystem,
        offsets: Mapping[str, int] | None = None,
        *,
        about: str = "",
        tasks: Collection[str] | None = None,
    ) -> None:
        self._fs = fs
        self._about, self._tasks = about.lower().encode(), tasks
        self.offsets: dict[str, int] = dict(offsets or {})
        self._over: set[str] = set()  # segments that got a successor, and then had nothing new

    def skip(self) -> None:
        """Pass over all that is written so far. Errors: OSError."""
        for name in filter(parse_events, self._fs.list(layout.EVENTS)):
            with contextlib.suppress(FileNotFoundError):
                self.offsets[name] = self._fs.stat(layout.join(layout.EVENTS, name)).size

    def read(self, writers: Collection[str] | None = None) -> list[Event]:
        """New events, by their writers' clocks. Errors: OSError. An unfinished line waits for its end. A line that
        its writer repeated after a reported failure counts once. writers: the nodes that may have written since, None
        for any: of others only what was never read is opened, since journals stay for weeks after their nodes.
        """
        events: list[Event] = []
        segments = [name for name in map(parse_events, self._fs.list(layout.EVENTS)) if name is not None]
        last = {name.writer: name.segment for name in sorted(segments)}
        for segment in sorted(segments, key=lambda name: (name.writer, name.segment)):
            name = segment.encode()
            silent = writers is not None and name in self.offsets and segment.writer not in writers
            if silent or name in self._over:
                continue
            try:
                start = self.offsets.get(name, 0)
                data = self._fs.read(layout.join(layout.EVENTS, name), offset=start)
            except OSError as error:
                if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                    raise
                continue
            end = data.rfind(b"\n") + 1
            self.offsets[name] = start + end
            if not data and segment.segment < last[segment.writer]:
                self._over.add(name)
            events.extend(parse_lines(data[:end], self._about, self._tasks, writer=segment.writer))
        return sorted(events, key=lambda event: (event.at, event.writer, event.seq))


def is_older(event: Event, moment: datetime) -> bool:
    """Whether the stamp of an event says that it is older; one without a stamp is not."""
    try:
        at = datetime.fromisoformat(event.at)
    except ValueError:
        return False
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) < moment


def parse_lines(
    data: bytes, about: bytes = b"", tasks: Collection[str] | None = None, *, writer: str = ""
) -> Iterator[Event]:
    """Yield the events in some whole lines. about: what a line must contain, in lower case; tasks: the keys of those
    whose events are kept, None for all. writer: whose journal it is, '' if that is unknown.
    """
    for line in dict.fromkeys(data.splitlines()):
        if about and about not in line.lower():
            continue
        try:
            value = codec.load_object(line, "a journal", size=LINE_MAX)
            if tasks is None or key(str(value.get("task"))) in tasks:
                event = codec.check(Event, value, "a journal")
                yield event if writer in ("", event.writer) else event.written_by(writer)
        except BadFile:
            continue  # a line torn by a crash loses its event, not the rest
