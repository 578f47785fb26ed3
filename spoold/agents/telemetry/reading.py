"""A post in OTLP JSON becomes plain spans, as `spoold.pictures.traces.told` reads them from a result.

Law: pure, and the post is hostile: what cannot be read is passed over, and what is kept is bounded, in number and in
bytes. Answers of a model and long spans are kept, the others are counted.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from spoold.pictures.traces.told import FIELD

# So many spans, and so many bytes of JSON, of one attempt; so many attributes of one; so much of a text (characters).
SPANS_MAX, BYTES_MAX, ATTRIBUTES_MAX, TEXT_MAX = 300, 128 << 10, 24, 200
# So much of a longer text is masked before it is cut.
LOOKED_AT = 16 << 10
# So many different ids are remembered: a span that is posted again is no other.
IDS_MAX = 200_000
Clean = Callable[[str], str]
_ID = re.compile(r"[0-9a-fA-F]{16}")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
# Of these, one speaks of a model; the others are where in its source a program was.
_MODELS, _NOISE = "gen_ai.", ("code.", "thread.", "busy_ns", "idle_ns", "target")
_ERROR = (2, "STATUS_CODE_ERROR")


class Kept:
    """The spans of one attempt."""

    def __init__(self, clean: Clean = str) -> None:
        """clean: masks a text, before any of it is cut off."""
        self._clean = clean
        self._heap: list[
            tuple[tuple[bool, int], str, int]
        ] = []  # what each is worth, its id, its size; the least first
        self._spans: dict[str, dict[str, Any]] = {}
        self._above: dict[str, str] = {}  # of the spans that are not kept, too
        self._bytes = self._dropped = 0

    def take(self, post: Any) -> None:
        """Take in a post. Errors: none."""
        for span in spans_in(post, self._clean):
            span_id = span["span_id"]
            if span_id in self._above or span_id in self._spans:
                continue
            if len(self._above) < IDS_MAX:
                self._above[span_id] = span.get("parent", "")
            size = len(orjson.dumps(span))
            self._spans[span_id] = span
            self._bytes += size
            heapq.heappush(self._heap, (_worth(span), span_id, size))
            while len(self._heap) > SPANS_MAX or self._bytes > BYTES_MAX:
                _, least, size = heapq.heappop(self._heap)
                del self._spans[least]
                self._bytes -= size
                self._dropped += 1

    def field(self) -> dict[str, Any]:
        """Return the field of the result; nothing where nothing was told."""
        if not self._spans:
            return {}
        spans = sorted(map(self._placed, self._spans.values()), key=lambda span: (span["start"], span["span_id"]))
        return {FIELD: {"spans": spans, **({"dropped": self._dropped} if self._dropped else {})}}

    def _placed(self, span: dict[str, Any]) -> dict[str, Any]:
        """The span, below the nearest one above it that is kept."""
        above, seen = span.get("parent", ""), {span["span_id"]}
        while above in self._above and above not in self._spans and above not in seen:
            seen.add(above)
            above = self._above[above]
        return {**span, "parent": above} if above in self._spans else {k: v for k, v in span.items() if k != "parent"}


def _worth(span: Mapping[str, Any]) -> tuple[bool, int]:
    """A span of a model's answer is worth most, and then a long one: programs tell of much that takes no time."""
    return any(name.startswith(_MODELS) for name in span.get("attributes", ())), span["end"] - span["start"]


def spans_in(post: Any, clean: Clean = str) -> Iterator[dict[str, Any]]:
    """Yield the spans of a post."""
    for by in _objects(post, "resourceSpans"):
        resource = _object(by.get("resource"))
        service = _attributes(resource, clean).get("service.name")
        for scope in _objects(by, "scopeSpans"):
            for span in _objects(scope, "spans"):
                made = _span(span, clean)
                if made is not None:
                    yield made | ({"service": service} if isinstance(service, str) else {})


def _span(span: Mapping[str, Any], clean: Clean) -> dict[str, Any] | None:
    span_id, parent = span.get("spanId"), span.get("parentSpanId")
    start, end = _whole(span.get("startTimeUnixNano")), _whole(span.get("endTimeUnixNano"))
    if not isinstance(span_id, str) or not _ID.fullmatch(span_id) or not start or not end:
        return None
    made: dict[str, Any] = {"span_id": span_id.lower(), "name": _text(span.get("name"), clean)}
    if isinstance(parent, str) and _ID.fullmatch(parent):
        made["parent"] = parent.lower()
    made |= {"kind": _kind(span.get("kind")), "start": start, "end": end}
    if attributes := _attributes(span, clean):
        made["attributes"] = attributes
    status = _object(span.get("status"))
    if status.get("code") in _ERROR:
        made["error"] = _text(status.get("message"), clean)
    return made


def _attributes(within: Mapping[str, Any], clean: Clean) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pair in _objects(within, "attributes"):
        name, value = pair.get("key"), _value(_object(pair.get("value")), clean)
        if not isinstance(name, str) or value is None or name.startswith(_NOISE):
            continue
        if len(made) < ATTRIBUTES_MAX:
            made[_text(name, clean)] = value
    return made


def _value(value: Mapping[str, Any], clean: Clean) -> str | bool | int | float | None:
    text, flag, fraction = value.get("stringValue"), value.get("boolValue"), value.get("doubleValue")
    if isinstance(text, str):
        return _text(text, clean)
    if isinstance(flag, bool):
        return flag
    if isinstance(fraction, int | float) and not isinstance(fraction, bool):
        return float(fraction)
    return _whole(value.get("intValue"))


def _whole(value: Any) -> int | None:
    """A 64-bit number, which is text in the JSON of OTLP, and a number where a program does not know that."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _kind(value: Any) -> int:
    if isinstance(value, str):
        value = _KINDS.index(word) if (word := value.removeprefix("SPAN_KIND_")) in _KINDS else 1
    return value if isinstance(value, int) and 0 < value < len(_KINDS) else 1


def _objects(within: Any, name: str) -> Iterator[Mapping[str, Any]]:
    found = within.get(name) if isinstance(within, dict) else None
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            yield one


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any, clean: Clean) -> str:
    if not isinstance(value, str):
        return ""
    return value if len(value) <= TEXT_MAX else clean(value[:LOOKED_AT])[:TEXT_MAX]
