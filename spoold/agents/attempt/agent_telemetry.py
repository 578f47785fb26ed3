"""Spans of OpenTelemetry that an agent tells of its own attempt: a receiver around an attempt whose profile says
`trace = true`.

It stands apart from `one_attempt`, its one user: it is a server, with bounds of its own.

Law: nothing here ends, delays or fails an attempt. What is too much, too long or too slow is dropped and counted.
Where a receiver cannot be, or the owner of the machine has the spans sent elsewhere, the attempt goes on without one
and its log says so.

Touches: threads, the network.
"""

from __future__ import annotations

import heapq
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from spoold.agents.adapters.adapter import Errand
from spoold.agents.configuration import redactor
from spoold.agents.configuration.profiles import Profile
from spoold.agents.process import confinement
from spoold.agents.process.turns import Scene
from spoold.pictures.traces.agent_spans import FIELD
from spoold.protocol import codec
from spoold.protocol.errors import BadFile

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_ELSEWHERE = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def listening(
    profile: Profile, errand: Errand, scene: Scene, result: dict[str, Any], say: Callable[[str], None]
) -> Iterator[tuple[Errand, Scene]]:
    """Inside, an errand and its scene, whose agent tells its spans if its profile says so; at the end they are in
    `result`.
    """
    receiver = _receiver(profile, errand.env, say) if profile.trace else None
    if receiver is None:
        yield errand, scene
        return
    more = variables(receiver.url)
    try:
        # What an adapter says counts more than the scene, and not every adapter says anything.
        told = replace(errand, trace=receiver.url, env={**errand.env, **more})
        yield told, replace(scene, env={**scene.env, **more})
    finally:
        result |= receiver.close()


def variables(url: str) -> dict[str, str]:
    """Return what tells a program where to send its spans; figures and logs are not taken."""
    return {
        ENDPOINT: url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }


def _receiver(profile: Profile, env: Mapping[str, str], say: Callable[[str], None]) -> Receiver | None:
    if confinement.read(profile.sandbox, "the sandbox of the profile").asked().network != "host":
        say('its spans are not taken: its sandbox does not reach this machine (trace needs network = "host")')
        return None
    if name := next((name for name in _ELSEWHERE if env.get(name)), None):
        say(f"its spans are not taken: {name} has them sent elsewhere")
        return None
    try:
        return Receiver(redactor.masking())
    except OSError as error:
        say(f"its spans are not taken: there is no port for them ({error.strerror})")
        return None


# The server on loopback to which an agent posts its spans.


# Bytes of one post, and of all; posts at once; seconds for one post, and for silence within it.
POST_MAX, ALL_MAX, AT_ONCE, POST_S, SILENT_S = 8 << 20, 512 << 20, 8, 10.0, 3.0
_DECIMAL, _CHUNK, _LINE_MAX = re.compile(r"[0-9]{1,12}"), re.compile(rb"([0-9a-fA-F]{1,8})(?:;[^\r]*)?\r\n"), 1024
TRACES, IGNORED = "/v1/traces", ("/v1/metrics", "/v1/logs")


class Receiver(ThreadingHTTPServer):
    """Takes posts until it is closed. Errors of the making: OSError."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, clean: Clean = str) -> None:
        """clean: masks a text."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept = Kept(clean)
        self.path = f"/{secrets.token_urlsafe(24)}"
        self._left = ALL_MAX
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is, as OTEL_EXPORTER_OTLP_ENDPOINT has it."""
        return f"http://127.0.0.1:{self.server_port}{self.path}"

    def close(self) -> dict[str, Any]:
        """Take no more; returns the field of the result."""
        self.shutdown()
        self.server_close()
        with self._lock:
            return self.kept.field()

    def spend(self, size: int) -> bool:
        """Whether so many bytes more may be read."""
        with self._lock:
            self._left -= size
            return self._left >= 0

    def take(self, post: Any) -> None:
        """Keep the spans of a post."""
        with self._lock:
            self.kept.take(post)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a request in a thread of its own; beyond AT_ONCE, close it."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a request, and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the log of an attempt is the agent's."""


class _Refused(Exception):
    """A post is not taken. status: what is answered."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENT_S
    server: Receiver

    def handle(self) -> None:
        # A client that sends a byte now and then would hold a place for ever.
        give_up = threading.Timer(POST_S, self._cut)
        give_up.daemon = True
        give_up.start()
        try:
            super().handle()
        finally:
            give_up.cancel()

    def do_POST(self) -> None:
        name = self._name()
        if name is None:
            self._answer(HTTPStatus.NOT_FOUND)
        elif not self._is_json():
            self._answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        else:
            try:
                post = codec.load(self._body(), "the post")
            except _Refused as refused:
                self._answer(refused.status)
            except BadFile:
                self._answer(HTTPStatus.BAD_REQUEST)
            else:
                if name == TRACES:
                    self.server.take(post)
                self._answer(HTTPStatus.OK)

    def _name(self) -> str | None:
        """What is posted; None for a path that is not this server's."""
        own, given = self.server.path.encode(), self.path.encode("utf-8", "replace")
        if not secrets.compare_digest(own, given[: len(own)]):
            return None
        name = self.path[len(self.server.path) :]
        return name if name in (TRACES, *IGNORED) else None

    def _is_json(self) -> bool:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return kind == "application/json" and self.headers.get("Content-Encoding", "identity") == "identity"

    def _body(self) -> bytes:
        """Return the body, of a known length or in chunks. Errors: _Refused, OSError."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        if not _DECIMAL.fullmatch(length):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED)
        return self._piece(int(length), POST_MAX)

    def _chunks(self) -> Iterator[bytes]:
        left = POST_MAX
        while True:
            size = _CHUNK.fullmatch(self.rfile.readline(_LINE_MAX))
            if size is None:
                raise _Refused(HTTPStatus.BAD_REQUEST)
            if not int(size[1], 16):
                return
            piece = self._piece(int(size[1], 16), left)
            left -= len(piece)
            yield piece
            if self.rfile.readline(_LINE_MAX) != b"\r\n":
                raise _Refused(HTTPStatus.BAD_REQUEST)

    def _piece(self, size: int, most: int) -> bytes:
        """Return so many bytes. They may come slowly: `_cut` ends that. Errors: _Refused, OSError."""
        if size > most or not self.server.spend(size):
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        data = self.rfile.read(size)
        if len(data) < size:
            raise _Refused(HTTPStatus.BAD_REQUEST)
        return data

    def _answer(self, status: HTTPStatus) -> None:
        body = b"{}"
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no post, or no HTTP, as all else."""
        self._answer(HTTPStatus(code))

    def version_string(self) -> str:
        """Name no versions."""
        return "spoold"

    def log_message(self, *_: object) -> None:
        """Keep no log of posts."""


# A post in OTLP JSON becomes plain spans, as `spoold.pictures.traces.agent_spans` reads them from a result.


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
