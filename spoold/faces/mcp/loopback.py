"""The server over streamable HTTP, on loopback.

Law: it listens on 127.0.0.1 alone. All who have the token are one caller to this server: they share its role and its
reach.

Touches: processes, the network.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from spoold.faces.mcp.guard import HOSTS, Guard
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
