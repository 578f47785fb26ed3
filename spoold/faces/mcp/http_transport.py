"""The server over streamable HTTP, on loopback, and the file that holds its token.

Law: it listens on 127.0.0.1 alone. All who have the token are one caller to this server: they share its role and its
reach. Only this user may read the file, or the server does not start. It is made once and stays, so that a
configuration that was pasted once goes on working.

Touches: files, processes, the network, the environment.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import signal
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from spoold.faces.mcp.server import serve
from spoold.faces.mcp.session import Session
from spoold.protocol.errors import SpoolError

PATH = "/mcp"
LEAVES_WITHIN_S = 3
# Of one request; a task may have 1 MiB of its own.
BODY_MOST = 8 << 20


def run(session: Session, port: int, token: str, say: Callable[[str], None]) -> None:
    """Serve until a signal ends it. port: 0 for any that is free; say: gets the URL. Errors: SpoolError."""
    listening = _listen(port)
    port = int(listening.getsockname()[1])
    hosts = [f"{host}:{port}" for host in HOSTS]
    app = serve(session).streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=BODY_MOST,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts),
    )
    config = uvicorn.Config(
        Guard(app, token, port),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=LEAVES_WITHIN_S,
    )
    # When it has stopped, the server raises the signal again: the spool is to be left clean all the same.
    signal.signal(signal.SIGTERM, _leave)
    say(f"http://127.0.0.1:{port}{PATH}")
    uvicorn.Server(config).run(sockets=[listening])


def _leave(*_: object) -> None:
    sys.exit(0)


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        said = f"--port: 127.0.0.1:{port} cannot be used: {error.strerror}."
        raise SpoolError(f"{said} Fix: give another one; --port 0 takes any that is free.") from error
    return listening


# Who may speak to the server over HTTP: the token, the host and the origin of a request are judged before anything
# reads it.


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


# The file that holds the token of the server over HTTP.


LENGTH = 32
_WARY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def token_file(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the token that servers of this user have where they are told no other."""
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or "~", ".local", "state")
    return os.path.join(os.path.expanduser(state), "spoold", "mcp.token")


def read_or_make(path: str) -> str:
    """Return the token in a file, which is made where there is none. Errors: SpoolError, OSError."""
    with suppress(FileNotFoundError):
        return _read(path)
    os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
    with suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(made, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(LENGTH) + "\n")
    return _read(path)


def _read(path: str) -> str:
    descriptor = os.open(path, _WARY)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise SpoolError(f"{path}: others may read the token. Fix: chmod 600 {path}, as its owner, or remove it.")
        token = file.read(1000).strip()
    if len(token) < LENGTH or not token.isascii() or not token.isprintable():
        raise SpoolError(f"{path}: holds no token of {LENGTH} characters or more. Fix: remove it, and one is made.")
    return token
