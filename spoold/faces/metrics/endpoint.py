"""The page over HTTP, at /metrics: one look for however many readers.

Law: it answers GET and HEAD and nothing else, and changes nothing. On loopback it answers only requests that name
this machine as their host: a page in a browser cannot read it through a name that points here. A client that is slow
or silent loses its connection, and only so many are served at once. However many ask, one of them looks, and the
others wait for that look or get the last one if it is fresh. A look that failed counts as a look: a share that is
gone is not asked again at once. A look that hangs holds one reader; the others are told so after a while.

Touches: processes, threads, the clock, the network.
"""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from spoold.faces.metrics.exposition import CONTENT_TYPE
from spoold.protocol.errors import SpoolError, Unavailable

PATH = "/metrics"
AT_ONCE = 32
SILENT_S = 15
_HERE = ("127.0.0.1", "localhost", "[::1]")


class Server(ThreadingHTTPServer):
    """Serves one page. Errors: SpoolError for an address that cannot be used."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, page: Page, address: str, port: int) -> None:
        self.page = page
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            self.loopback = ipaddress.ip_address(address).is_loopback
            super().__init__((address, port), _Handler)
        except ValueError:
            raise SpoolError(f"--address: {address!r} is no IP address. Fix: give one of this machine.") from None
        except OSError as error:
            said = f"--port: {address}:{port} cannot be used: {error.strerror}."
            raise SpoolError(f"{said} Fix: give another one; --port 0 takes any that is free.") from error

    @property
    def url(self) -> str:
        """Where it can be read."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a request in a thread of its own; beyond AT_ONCE, close it."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a request, and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away; all else is a bug."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENT_S
    server: Server

    def do_GET(self) -> None:
        if self.server.loopback and not self._from_here():
            self._answer(HTTPStatus.FORBIDDEN, f"The host of a request is one of {', '.join(_HERE)}.\n")
        elif self.path.partition("?")[0] != PATH:
            self._answer(HTTPStatus.NOT_FOUND, f"The metrics are at {PATH}.\n")
        else:
            try:
                self._answer(HTTPStatus.OK, self.server.page.text(), CONTENT_TYPE)
            except Unavailable as error:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _from_here(self) -> bool:
        host = self.headers.get("Host", "")
        name = host[: host.rindex("]") + 1] if "]" in host else host.partition(":")[0]
        return name.lower() in _HERE or name == str(self.server.server_address[0])

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Name no versions."""
        return "spoold"

    def log_message(self, *_: object) -> None:
        """Keep no log of scrapes."""


def run(page: Page, address: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until a signal ends it. port: 0 for any that is free; say: gets the URL. Errors: SpoolError."""
    with Server(page, address, port) as server:
        signal.signal(signal.SIGTERM, _leave)
        say(server.url)
        server.serve_forever()


def _leave(*_: object) -> None:
    sys.exit(0)


# One look for however many readers, and none more often than every few seconds.


# A leader on a share reports every second at most, and Prometheus asks every 15 s as a rule.
EVERY_S = 5.0
# Below the 10 s after which Prometheus gives up by itself, so that its log has our reason.
PATIENCE_S = 8.0


class Page:
    """The last look, and when it was begun."""

    def __init__(
        self,
        look: Callable[[], str],
        *,
        now: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._look, self._now = look, now
        self._every_s, self._patience_s = every_s, patience_s
        self._alone = threading.Lock()
        self._looked_at: float | None = None
        self._text, self._error = "", ""

    def text(self) -> str:
        """Return the page. Errors: Unavailable, with the reason of the last look, or since a look still hangs."""
        if not self._alone.acquire(timeout=self._patience_s):
            raise Unavailable(f"the share has not answered for {self._patience_s:g} s.")
        try:
            if self._looked_at is None or self._now() - self._looked_at >= self._every_s:
                self._looked_at = self._now()
                self._refresh()
        finally:
            self._alone.release()
        if self._error:
            raise Unavailable(self._error)
        return self._text

    def _refresh(self) -> None:
        self._text = ""
        try:
            self._text, self._error = self._look(), ""
        except SpoolError as error:
            self._error = str(error)
        except OSError as error:
            self._error = f"the share cannot be read: {error.strerror or error}."
