"""`spool trace export --endpoint`: spans for a collector, over OTLP/HTTP.

Law: nothing is sent anywhere but to the address that the caller names. No other module imports this one but the verb,
so that no other command loads the SDK, which the extra `otel` brings. Spans are sent as they are, with their ids.
OpenTelemetry's own exporter does it, so that headers, certificates and time limits are those of the variables
OTEL_EXPORTER_OTLP_*.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from spoold.pictures.traces import conventions as said
from spoold.pictures.traces.span import SPANS_MAX, Kind, Span
from spoold.protocol.amount import amount
from spoold.protocol.errors import SpoolError, Unavailable
from spoold.protocol.trace_ids import Context
from spoold.protocol.version import __version__

PATH = "/v1/traces"
_KINDS = {
    Kind.INTERNAL: SpanKind.INTERNAL,
    Kind.SERVER: SpanKind.SERVER,
    Kind.CLIENT: SpanKind.CLIENT,
    Kind.PRODUCER: SpanKind.PRODUCER,
    Kind.CONSUMER: SpanKind.CONSUMER,
}


def send(spans: Sequence[Span], endpoint: str) -> None:
    """Send the spans. endpoint: the address of the collector, with or without PATH.

    Errors: SpoolError for what is no address; Unavailable where the collector does not take them.
    """
    url = address(endpoint)
    exporter, heard = OTLPSpanExporter(endpoint=url), _Heard()
    log = logging.getLogger("opentelemetry")
    log.addHandler(heard)
    log.propagate = False
    try:
        for begin in range(0, len(spans), SPANS_MAX):
            some = spans[begin : begin + SPANS_MAX]
            if exporter.export(list(map(_readable, some))) is not SpanExportResult.SUCCESS:
                sent = f"{begin} of {amount(len(spans), 'span')} were taken" if begin else "nothing was taken"
                why = f": {heard.last}" if heard.last else ""
                raise Unavailable(
                    f"--endpoint: {url} does not take the spans{why} ({sent}). Fix: start the collector, or name "
                    "another one; sending all of them again does no harm."
                )
    finally:
        log.removeHandler(heard)
        log.propagate = True


def address(endpoint: str) -> str:
    """Return where spans are posted. Errors: SpoolError."""
    try:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        problem = f"--endpoint: {endpoint!r} is no address of a collector."
        raise SpoolError(f"{problem} Fix: write one as http://localhost:4318.") from None
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(PATH) else path + PATH, fragment=""))


class _Heard(logging.Handler):
    """Keeps the last words of the exporter, which it logs and does not return."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = " ".join(record.getMessage().split())[:300]


def _readable(span: Span) -> ReadableSpan:
    status = Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error)
    return ReadableSpan(
        span.name,
        _context(span.context),
        _context(Context(span.context.trace_id, span.parent)) if span.parent else None,
        Resource(dict(span.resource), said.SCHEMA_URL),
        dict(span.attributes),
        [Event(mark.name, dict(mark.attributes), mark.at) for mark in span.marks],
        [Link(_context(link.to), {said.WHY: link.why}) for link in span.links],
        _KINDS[span.kind],
        None,
        status,
        span.start,
        span.end,
        InstrumentationScope(said.SCOPE, __version__, said.SCHEMA_URL),
    )


def _context(context: Context) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), is_remote=False, trace_flags=flags)
