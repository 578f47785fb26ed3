"""Who may speak to the server over HTTP: the token, the host and the origin of a request are judged before anything
reads it.

Law: without the token nothing is answered but a refusal. A page in a browser is refused, whatever it sends: no client
of this protocol is one, and a page may reach loopback from anywhere (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Lets through only requests with the token, to this host, and from no page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{host}:{port}".encode() for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        refused = self._refuses(dict(headers)) if _each_once(headers) else (400, "a header is there twice.")
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await _refuse(send, *refused)

    def _refuses(self, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """Return status and words for a request that is refused; None where it is let through."""
        if headers.get(b"host", b"").lower() not in self._hosts:
            return 421, "the Host is not this machine. Fix: use the URL that `spool mcp --http` printed."
        if b"origin" in headers:
            return 403, "requests of web pages are refused. Fix: use a client of the protocol."
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            return 401, "the token is missing or wrong. Fix: send the header `Authorization: Bearer TOKEN`."
        return None


def _each_once(headers: list[tuple[bytes, bytes]]) -> bool:
    names = [name for name, _ in headers if name in (b"host", b"origin", b"authorization")]
    return len(names) == len(set(names))


async def _refuse(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
