"""Spans that an agent told of its own attempt, as the result of the attempt holds them.

    "trace": {"spans": [{"trace_id": …, "span_id": …, "parent": …, "name": …, "start": …, "end": …, …}], "dropped": 0}

Law: whatever a result says, what comes out is a part of its attempt: in its trace, below its span, and each parent is
there. What cannot be read is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from spoold.pictures.traces import conventions as said
from spoold.pictures.traces.span import Kind, Span, Value
from spoold.pictures.wording import clip
from spoold.protocol.trace_ids import Context

# The field of a result, and how much of it is read.
FIELD = "trace"
SPANS_MAX, ATTRIBUTES_MAX, TEXT_MAX = 1000, 64, 1000
_SPAN = re.compile(r"[0-9a-f]{16}")
_MOMENT_MAX = (1 << 63) - 1


def spans_in(output: Any, around: Span, taken: frozenset[str]) -> tuple[list[Span], int]:
    """Return the spans that a result holds, and how many it says were dropped. around: the span of the attempt;
    taken: ids that none of them may have.
    """
    field = output.get(FIELD) if isinstance(output, dict) else None
    listed = field.get("spans") if isinstance(field, dict) else None
    if not isinstance(field, dict) or not isinstance(listed, list):
        return [], 0
    found: dict[str, Span] = {}
    for one in listed[:SPANS_MAX]:
        span = _span(one, around) if isinstance(one, dict) else None
        if span is not None and span.context.span_id not in taken:
            found.setdefault(span.context.span_id, span)
    dropped = field.get("dropped")
    return list(_below(found, around)), dropped if isinstance(dropped, int) and 0 < dropped < _MOMENT_MAX else 0


def without_spans(output: Any) -> Any:
    """Return an output without the spans in it; any other one as it is."""
    field = output.get(FIELD) if isinstance(output, dict) else None
    if not isinstance(field, dict) or "spans" not in field:
        return output
    return {name: value for name, value in output.items() if name != FIELD}


def _below(found: Mapping[str, Span], around: Span) -> Iterator[Span]:
    """The spans; one without a parent among them, or that is above itself, is below the attempt."""
    for span in found.values():
        seen, above = {span.context.span_id}, span.parent
        while above in found and above not in seen:
            seen.add(above)
            above = found[above].parent
        known = span.parent in found and above not in seen
        yield span if known else replace(span, parent=around.context.span_id)


def _span(one: dict[str, Any], around: Span) -> Span | None:
    span_id, start, end = one.get("span_id"), _moment(one.get("start")), _moment(one.get("end"))
    if not isinstance(span_id, str) or not _SPAN.fullmatch(span_id) or not span_id.strip("0"):
        return None
    if start is None or end is None:
        return None
    error, service = one.get("error"), one.get("service")
    return Span(
        Context(around.context.trace_id, span_id),
        _text(one.get("parent")),
        _text(one.get("name")) or "span",
        next((kind for kind in Kind if kind == one.get("kind")), Kind.INTERNAL),
        start,
        max(start, end),
        dict(attributes_in(one.get("attributes"))),
        error=None if not isinstance(error, str) else _text(error),
        resource={
            said.SERVICE_NAME: _text(service) or "agent",
            said.SERVICE_INSTANCE: around.attributes.get(said.WORKER, ""),
        },
    )


def attributes_in(value: Any) -> Iterator[tuple[str, Value]]:
    """Yield the plain attributes of an object, made short and harmless."""
    for name, one in list(value.items())[:ATTRIBUTES_MAX] if isinstance(value, dict) else ():
        if isinstance(one, str):
            yield clip(name, TEXT_MAX), _text(one)
        elif isinstance(one, int | float) and abs(one) <= _MOMENT_MAX:  # which NaN is not
            yield clip(name, TEXT_MAX), one


def _moment(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 < value <= _MOMENT_MAX else None


def _text(value: Any) -> str:
    return clip(value[: 4 * TEXT_MAX], TEXT_MAX) if isinstance(value, str) else ""
