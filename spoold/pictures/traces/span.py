"""A span: an id, a begin, an end, and what it says; and spans as lines of OTLP JSON.

Each line is one request, as a collector's `otlpjsonfile` receiver reads it.

Law: values only. Moments are nanoseconds since 1970, by the clock of the node that wrote them. No span ends before it
begins. A line is as the JSON of OTLP wants it: ids in lower-case hexadecimal, 64-bit numbers as text, enumerations as
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

import orjson

from spoold.pictures.traces import conventions as said
from spoold.protocol.trace_ids import Context
from spoold.protocol.version import __version__

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


# Spans as lines of OTLP JSON: each line is one request, as a collector's `otlpjsonfile` receiver reads it.


# So many spans are in one line, and in one request.
SPANS_MAX = 500
_ERROR, _SAMPLED = 2, 1
_LONG = 1 << 63


def ordered(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in the order in which they began, the longer one first, each once."""
    once = {(span.context.trace_id, span.context.span_id): span for span in spans}
    return sorted(once.values(), key=_place)


def _place(span: Span) -> tuple[int, int, str, str]:
    return span.start, -span.end, span.context.trace_id, span.context.span_id


def lines(spans: Sequence[Span]) -> Iterator[str]:
    """Yield the requests, one per line, each with its end of line."""
    for begin in range(0, len(spans), SPANS_MAX):
        made = request(spans[begin : begin + SPANS_MAX])
        yield orjson.dumps(made, option=orjson.OPT_APPEND_NEWLINE).decode()


def request(spans: Iterable[Span]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest."""
    found: dict[tuple[tuple[str, Value], ...], list[Span]] = {}
    for span in spans:
        found.setdefault(tuple(sorted(span.resource.items())), []).append(span)
    scope = {"name": said.SCOPE, "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(dict(resource))},
                "scopeSpans": [{"scope": scope, "spans": list(map(_span, some)), "schemaUrl": said.SCHEMA_URL}],
                "schemaUrl": said.SCHEMA_URL,
            }
            for resource, some in found.items()
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.context.trace_id,
        "spanId": span.context.span_id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "flags": _SAMPLED,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.marks:
        made["events"] = list(map(_mark, span.marks))
    if span.links:
        made["links"] = list(map(_link, span.links))
    made["status"] = {} if span.error is None else {"message": span.error, "code": _ERROR}
    return made


def _mark(mark: Mark) -> dict[str, Any]:
    return {"timeUnixNano": str(mark.at), "name": mark.name, "attributes": _attributes(mark.attributes)}


def _link(link: Link) -> dict[str, Any]:
    ids = {"traceId": link.to.trace_id, "spanId": link.to.span_id, "flags": _SAMPLED}
    return {**ids, "attributes": _attributes({said.WHY: link.why})}


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and abs(value) < _LONG:
        return {"intValue": str(value)}
    if isinstance(value, int | float):
        return {"doubleValue": float(value)}
    return {"stringValue": value}
