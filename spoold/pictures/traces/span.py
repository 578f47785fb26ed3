"""A span: an id, a begin, an end, and what it says.

Law: values only. Moments are nanoseconds since 1970, by the clock of the node that wrote them. No span ends before it
begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from spoold.protocol.trace_ids import Context

Value = str | bool | int | float
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Kind(IntEnum):
    """What a span is to others, by its number in OTLP."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


@dataclass(frozen=True, slots=True)
class Link:
    """Another span that it has to do with. why: in a word."""

    to: Context
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment within a span."""

    at: int
    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One span. parent: the id of a span of the same trace, '' for none. resource: what it ran in.

    error: why it failed, None where it did not.
    """

    context: Context
    parent: str
    name: str
    kind: Kind
    start: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    links: tuple[Link, ...] = ()
    error: str | None = None
    resource: Mapping[str, Value] = field(default_factory=dict)


def nanos(stamp: str | None) -> int | None:
    """Return a stamp (RFC 3339) as nanoseconds since 1970; None for text that is none, has no zone, or is earlier."""
    try:
        at = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    if at.tzinfo is None or at < _EPOCH:
        return None
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
