"""One attempt from its claim to its commit, by its record and the journals.

Law: a record is the truth for an attempt that ended, and the journals add the moments around it. Where they have lost
something, the record alone makes the lap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spoold.pictures.traces.span import nanos
from spoold.protocol.event import Event
from spoold.protocol.result import Result

_ENDS = ("COMPLETED", "FAILED", "SKIPPED", "RETURNED")
_BEGINS = ("ADMITTED", "RETRIED", "REDONE")
# These are spans themselves, or their beginnings and ends.
_TOLD = frozenset({*_ENDS, *_BEGINS, "WAITING", "READY", "CLAIMED", "STARTED", "ARCHIVED", "FILES_CHANGED"})


@dataclass(frozen=True)
class Traced:
    """A task, as far as a trace tells of it. records: oldest first; events: of this task, by their writers' clocks;
    admitted: by its name, None once it has ended; running: the attempt that is claimed, 0 for none.
    """

    id: str
    kind: str
    name: str = ""
    batch: str = ""
    parent: str = ""
    meta: Any = None
    model: str = ""
    created_at: str = ""
    admitted: int | None = None
    running: int = 0
    records: tuple[Result, ...] = ()
    events: tuple[Event, ...] = ()

    @cached_property
    def laps(self) -> tuple[Lap, ...]:
        """All its attempts, in their order, also what ended it before one began."""
        records = {record.attempt: record for record in self.records}
        claimed = {event.attempt for event in self.events if event.event == "CLAIMED" and event.attempt}
        numbers = {*records, *claimed, *([self.running] if self.running else [])}
        return tuple(
            Lap(number, records.get(number), tuple(event for event in self.events if event.attempt == number))
            for number in sorted(numbers)
        )

    @cached_property
    def sent(self) -> tuple[int, int] | None:
        """When it was submitted, and when it was admitted; None where nobody knows."""
        admitted = next((nanos(event.at) for event in self.events if event.event == "ADMITTED"), None)
        begins = (lap.begin or lap.done for lap in self.laps)
        created = nanos(self.created_at)
        end = admitted or self.admitted or created or next(filter(None, begins), None)
        return None if end is None else (min(created or end, end), end)

    @cached_property
    def marks(self) -> tuple[tuple[int, Event], ...]:
        """What else the journals tell of it, with the moment of each."""
        found = ((nanos(event.at), event) for event in self.events if event.event not in _TOLD)
        return tuple((at, event) for at, event in found if at is not None)


@dataclass(frozen=True)
class Lap:
    """One attempt. record: None while it has none; events: of this attempt."""

    number: int
    record: Result | None
    events: tuple[Event, ...] = ()
    _at: Mapping[str, Event] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_at", {event.event: event for event in self.events})  # the last one counts

    def at(self, *names: str) -> int | None:
        """When the first of these events was noted that was; None for none."""
        return next((moment for name in names if name in self._at and (moment := nanos(self._at[name].at))), None)

    @property
    def worker(self) -> str:
        """The worker; '' where nobody has claimed it. The record of a dead worker's attempt is the leader's."""
        if "CLAIMED" in self._at:
            return self._at["CLAIMED"].writer
        return self.record.worker_id if self.record is not None and self.begin is not None else ""

    @property
    def placed(self) -> int | None:
        """When its waiting began with more than the end of the attempt before it."""
        return self.at(*_BEGINS)

    @property
    def started(self) -> int | None:
        """When its processes began, as its record says, or else the journal."""
        return nanos(self.record.started_at) if self.record is not None else self.at("STARTED")

    @property
    def begin(self) -> int | None:
        """When it was claimed; None where it never was."""
        moments = [moment for moment in (self.at("CLAIMED"), self.started) if moment is not None]
        return min(moments, default=None)

    @property
    def done(self) -> int | None:
        """When its processes had ended, or else when it was moved; None while it runs."""
        if self.record is not None:
            return nanos(self.record.completed_at)
        return self.at(*_ENDS)

    @property
    def moved(self) -> int | None:
        """When its worker committed it. A leader's move of a dead worker's task is no part of the attempt."""
        ended = next((self._at[name] for name in _ENDS if name in self._at), None)
        return nanos(ended.at) if ended is not None and ended.writer == self.worker else None

    @property
    def end(self) -> int | None:
        """When it was over, with its commit; None while it is not."""
        done, moved = self.done, self.moved
        return done if done is None or moved is None else max(done, moved)
