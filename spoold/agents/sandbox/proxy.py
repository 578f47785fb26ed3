"""The way out of a sandbox whose network is `proxy`: a proxy for CONNECT on a Unix socket, with a list of hosts.

It resolves names outside of the sandbox, and connects only to what the list lets through. It does not look into what
is passed on, and speaks no plain HTTP.

Law: what is not on the list is refused and noted. It never connects to an address that `hosts.may_connect` forbids.

Touches: files, threads, the network.
"""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from spoold.agents.sandbox import hosts
from spoold.agents.sandbox.inside import copy
from spoold.system.remover import remove

CONNECT_S = 20.0
HEAD_BYTES = 8 << 10
HEAD_S = 30.0
AT_ONCE = 128
NOTED = 100


class Proxy:
    """Serves from `with` on; `path` is its socket, in a folder that only its owner may enter."""

    def __init__(self, listed: Iterable[str]) -> None:
        """listed: as of `Sandbox.hosts`. Errors: ValueError."""
        self._entries = tuple(map(hosts.entry, listed))
        self._room = threading.Semaphore(AT_ONCE)
        self._refused: list[str] = []
        self._folder = ""
        self._door = socket.socket(socket.AF_UNIX)

    @property
    def path(self) -> str:
        """Where it listens."""
        return f"{self._folder}/s"

    @property
    def refused(self) -> tuple[str, ...]:
        """The first hosts, with ports, that the list did not let through, each once."""
        return tuple(self._refused)

    def __enter__(self) -> Self:
        """Begin to serve. Errors: OSError."""
        self._folder = tempfile.mkdtemp(prefix="spoold-proxy-")
        self._door.bind(self.path)
        self._door.listen(AT_ONCE)
        threading.Thread(target=self._serve, daemon=True, name="spoold-proxy").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Serve no more. Connections that stand go on until one of their sides ends."""
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        remove(self._folder)

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                near.close()
                continue
            threading.Thread(target=self._attend, args=(near,), daemon=True).start()

    def _attend(self, near: socket.socket) -> None:
        try:
            with near:
                self._answer(near)
        except OSError:
            pass  # its client is gone
        finally:
            self._room.release()

    def _answer(self, near: socket.socket) -> None:
        near.settimeout(HEAD_S)
        head, rest = _head(near)
        method, _, target = head.partition(b" ")
        if method != b"CONNECT":
            _say(near, "405 Only CONNECT", "this proxy passes on nothing but CONNECT: use https")
            return
        try:
            host, port = hosts.split(target.partition(b" ")[0].decode("ascii"))
        except ValueError:
            _say(near, "400 Bad Request", "CONNECT needs HOST:PORT")
            return
        if not hosts.lets_through(host, port, self._entries):
            self._note(f"{host}:{port}")
            _say(near, "403 Forbidden", f"{host}:{port} is not in the list of hosts of this sandbox")
            return
        far = self._reach(near, host, port)
        if far is None:
            return
        with far:
            near.settimeout(None)
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            far.sendall(rest)
            back = threading.Thread(target=copy, args=(far, near), daemon=True)
            back.start()
            copy(near, far)
            back.join()

    def _reach(self, near: socket.socket, host: str, port: int) -> socket.socket | None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            _say(near, "502 Bad Gateway", f"{host} has no address: {error}")
            return None
        addresses = [str(each[4][0]) for each in found if hosts.may_connect(host, str(each[4][0]))]
        if not addresses:
            self._note(f"{host}:{port}")
            _say(near, "403 Forbidden", f"{host} has an address of this machine or of a private network")
            return None
        for address in addresses:
            # By address: the name could have another one by now.
            with suppress(OSError):
                far = socket.create_connection((address, port), CONNECT_S)
                far.settimeout(None)
                far.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return far
        _say(near, "502 Bad Gateway", f"{host}:{port} cannot be reached")
        return None

    def _note(self, host: str) -> None:
        if host not in self._refused and len(self._refused) < NOTED:
            self._refused.append(host)


def _head(near: socket.socket) -> tuple[bytes, bytes]:
    """Return the first line of a request, and what follows its head. Errors: OSError."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = near.recv(HEAD_BYTES)
        if not more or len(data) > HEAD_BYTES:
            raise OSError("no request came")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], rest


def _say(near: socket.socket, status: str, why: str) -> None:
    body = f"{why}\n".encode()
    near.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


def variables(port: int) -> dict[str, str]:
    """Return the variables by which programs find a proxy on this port of 127.0.0.1."""
    url = f"http://127.0.0.1:{port}"
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    return dict.fromkeys(names, url) | {"NO_PROXY": "", "no_proxy": ""}
