"""Failures in a row: how many there were, and for how long they keep tasks of a type from starting.

Workers count their own attempts in this way, and the leader those of the whole pool.

Law: an attempt that says nothing about its type, since it was cancelled, lost or asked to be tried later, changes
nothing. While a breaker is open, only the attempt that tries does: the others began before it opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spoold.protocol.heartbeat import CLOCK_MAX_S
from spoold.protocol.quantity import MOST
from spoold.protocol.result import Code, Status
from spoold.protocol.settings import BreakerSettings, Settings

# The codes of attempts that ran and failed. One that its worker could not run says nothing about the type elsewhere.
FAILED = frozenset(
    {Code.EXIT_NONZERO, Code.TIMEOUT, Code.SIGNALED, Code.OOM_KILLED, Code.STALLED, Code.OUTPUT_INVALID}
)


@dataclass(frozen=True, slots=True)
class Row:
    """failures: in a row; until: until when (s, on the clock of the one who counts) the breaker keeps everything
    back, None while it is closed. When that has passed, one task tries. last: how the last one failed, for people.
    """

    failures: int = 0
    until: float | None = None
    last: str = ""

    def after(self, well: bool, last: str, rule: BreakerSettings, now: float, *, tried: bool) -> Row:
        """The row after an attempt that ended well or failed. tried: it was the one that tries an open breaker."""
        if self.until is not None and not tried:
            return self
        if well:
            return CLOSED
        failures = self.failures + 1
        opens = self.until is not None or failures >= rule.failures
        return Row(failures, now + rule.open_s if opens else None, last)

    def under(self, rule: BreakerSettings | None, now: float) -> Row:
        """The row once this is the rule: a breaker that allows more failures than there were is closed, and none is
        open for more than `open_s` from now, though the clock was set back.
        """
        if rule is None or (self.until is not None and self.failures < rule.failures):
            return CLOSED
        over = self.until is not None and self.until > now + rule.open_s
        return replace(self, until=now + rule.open_s) if over else self


CLOSED = Row()


def went(status: str, code: str | None) -> bool | None:
    """Whether an attempt says that its type goes well, or that it fails; None if it says neither."""
    if status == Status.SUCCESS:
        return True
    return False if code in FAILED else None


def breakers_of(settings: Settings) -> dict[str, BreakerSettings]:
    """The types that have a breaker, each with its rule."""
    return {kind: own.breaker for kind, own in settings.types.items() if own.breaker is not None}


@dataclass(slots=True)
class Book:
    """What a leader has counted. rows: by type, those with failures; trying: of open ones, the id of the task that
    tries, '' before one does. reading: attempts that ended before this leader came are not all counted yet.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    trying: dict[str, str] = field(default_factory=dict)
    reading: bool = False

    def put(self, kind: str, row: Row) -> None:
        """Replace the row of a type."""
        self.rows.pop(kind, None)
        if row.failures:
            self.rows[kind] = row

    def tripped(self) -> dict[str, float]:
        """The types whose breaker is open, or whose one task tries, each with the moment at which it may."""
        return {kind: row.until for kind, row in self.rows.items() if row.until is not None}

    def save(self) -> Any:
        """The rows as a JSON value."""
        return {kind: [row.failures, row.until, row.last] for kind, row in self.rows.items()}

    @staticmethod
    def load(state: Any) -> dict[str, Row]:
        """The rows that `save` gave. Errors: ValueError."""
        if not isinstance(state, Mapping):
            raise ValueError("it is no object")
        return {str(kind): _row(said) for kind, said in state.items()}


def _row(said: Any) -> Row:
    if not isinstance(said, list) or len(said) != 3:
        raise ValueError("a row has not three parts")
    failures, until, last = said
    if type(failures) is not int or failures < 1:
        raise ValueError(f"{failures!r} is no number of failures")
    if until is not None and not (type(until) in (int, float) and 0 <= until <= CLOCK_MAX_S):
        raise ValueError(f"{until!r} is no moment")
    return Row(min(failures, MOST), until, str(last))
