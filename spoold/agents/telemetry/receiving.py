"""The server on loopback to which an agent posts its spans.

Law: it takes posts of JSON under its own secret path and nothing else. A post has a bound in bytes and in seconds,
and all posts together have one. No post keeps the attempt waiting when it ends.

Touches: threads, the network.
"""

from __future__ import annotations

import re
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from spoold.agents.telemetry.reading import Clean, Kept
from spoold.protocol import codec
from spoold.protocol.errors import BadFile

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
