"""The way out of a sandbox whose network is `proxy`: a proxy for CONNECT on a Unix socket, with a list of hosts.

It resolves names outside of the sandbox, and connects only to what the list lets through. It does not look into what
is passed on, and speaks no plain HTTP.

Law: what is not on the list is refused and noted. It never connects to an address that `may_connect` forbids.
To one of this machine it connects only where the list itself says so. Whatever a client sends gets an answer in
words, or the end of its connection. Neither that nor a machine without room for more ends the proxy.

Which addresses are this machine's own, the kernel is asked each time: an address may come or go at any moment. What
it routes to itself is its own also where no interface has that address (AnyIP), and what an interface has is its own
also behind a route of another table (VRF). Whether a socket can be bound to it proves nothing: `ip_nonlocal_bind`
allows that for any.

Touches: files, processes, threads, the clock, the network.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from types import TracebackType
from typing import Self

import psutil

from spoold.agents.sandbox import sandbox_policy
from spoold.agents.sandbox.relay import copy
from spoold.system.remover import remove

CONNECT_S = 20.0
HEAD_BYTES = 8 << 10
HEAD_S = 10.0  # for all of it
LAST_S = 2.0
FULL_S = 0.1
AT_ONCE = 128
NOTED = 100
# What `accept` says where the machine, and not the door, is at its end.
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Proxy:
    """Serves from `with` on; `path` is its socket, in a folder that only its owner may enter."""

    def __init__(self, listed: Iterable[str]) -> None:
        """listed: as of `SandboxPolicy.hosts`. Errors: ValueError."""
        self._entries = tuple(map(sandbox_policy.entry, listed))
        self._room = threading.Semaphore(AT_ONCE)
        self._refused = dict[str, str]()
        self._folder = ""
        self._door = socket.socket(socket.AF_UNIX)

    @property
    def path(self) -> str:
        """Where it listens."""
        return f"{self._folder}/s"

    @property
    def refused(self) -> tuple[str, ...]:
        """What it did not let through, or did not reach: host, cause and fix of the first ones, each once."""
        return tuple(f"{why}. Fix: {fix}" for why, fix in self._refused.items())

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
            except OSError as error:
                if error.errno not in _FULL:
                    return
                time.sleep(FULL_S)
                continue
            if not self._room.acquire(blocking=False):
                _turn_away(near)
                continue
            try:
                threading.Thread(target=self._attend, args=(near,), daemon=True).start()
            except RuntimeError:  # this machine has no room for a thread
                near.close()
                self._room.release()

    def _attend(self, near: socket.socket) -> None:
        try:
            with near:
                self._answer(near)
        except (OSError, RuntimeError):
            pass  # its client is gone, or this machine has no room for a thread
        finally:
            self._room.release()

    def _answer(self, near: socket.socket) -> None:
        try:
            line, rest = _head(near)
        except ValueError as error:
            _say(near, *error.args)
            return
        method, _, target = line.partition(b" ")
        if method != b"CONNECT":
            _say(near, "405 Only CONNECT", "this proxy passes on nothing but CONNECT: use https")
            return
        try:
            host, port = sandbox_policy.split(_asked(target), 0)
        except ValueError:
            _say(near, "400 Bad Request", "CONNECT needs HOST:PORT HTTP/1.1, with a host name or an address")
            return
        if not sandbox_policy.lets_through(host, port, self._entries):
            name = host if port == sandbox_policy.HTTPS else f"{host}:{port}"
            why = f"{host}:{port} is not in the list of hosts of this sandbox"
            self._refuse(near, "403 Forbidden", why, f'add "{name}" {sandbox_policy.UNLISTED}')
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
            why = f"{host} has no address: {error}"
            self._refuse(near, "502 Bad Gateway", why, "let this machine look that name up")
            return None
        addresses = [str(each[4][0]) for each in found if sandbox_policy.may_connect(host, str(each[4][0]))]
        problem = ""
        for address in addresses.copy():
            try:
                if not sandbox_policy.leads_where_it_says(host) and is_own(address):
                    addresses.remove(address)
                    continue
                # By address: the name could have another one by now.
                far = socket.create_connection((address, port), CONNECT_S)
                far.settimeout(None)
                far.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return far
            except OSError as error:
                problem = f": {error.strerror or error}"
        if not addresses:
            why = f"{host} has an address of this machine or of a private network"
            self._refuse(near, "403 Forbidden", why, "name localhost or that address in hosts, if you mean that")
            return None
        why = f"{host}:{port} cannot be reached{problem}"
        self._refuse(near, "502 Bad Gateway", why, "look whether this machine reaches it")
        return None

    def _refuse(self, near: socket.socket, status: str, why: str, fix: str) -> None:
        if len(self._refused) < NOTED:
            self._refused.setdefault(why, fix)
        _say(near, status, why)


def _head(near: socket.socket) -> tuple[bytes, bytes]:
    """Return the first line of a request, and what follows its head.

    Errors: OSError; ValueError with a status and words, for a head that is none.
    """
    data, until = b"", time.monotonic() + HEAD_S
    while b"\r\n\r\n" not in data:
        if len(data) > HEAD_BYTES:
            raise ValueError("431 Request Header Fields Too Large", f"a request has at most {HEAD_BYTES} bytes")
        try:
            # At once where no time is left: it raises then, too.
            near.settimeout(max(until - time.monotonic(), 0))
            more = near.recv(HEAD_BYTES)
        except (TimeoutError, BlockingIOError):
            raise ValueError("408 Request Timeout", f"no whole request came within {HEAD_S:g} s") from None
        if not more:
            raise ValueError("400 Bad Request", "the request has no end: an empty line")
        data += more
    near.settimeout(HEAD_S)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], rest


def _asked(words: bytes) -> str:
    """Return the target of `TARGET HTTP/1.x`. Errors: ValueError."""
    target, version = words.decode("ascii").split(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise ValueError(version)
    return target


def _say(near: socket.socket, status: str, why: str) -> None:
    """Answer, and wait a moment for the end of the client: it could lose the answer if what it sent stays unread."""
    until = time.monotonic() + LAST_S
    near.settimeout(LAST_S)
    _send(near, status, why)
    near.shutdown(socket.SHUT_WR)
    while (left := until - time.monotonic()) > 0:
        near.settimeout(left)
        if not near.recv(1 << 16):
            return


def _turn_away(near: socket.socket) -> None:
    """Answer without a wait: the next client stands at the door."""
    with near, suppress(OSError):
        near.settimeout(0)
        _send(near, "503 Service Unavailable", f"all {AT_ONCE} connections of this proxy are in use")
        near.shutdown(socket.SHUT_RD)
        while near.recv(1 << 16):
            pass  # what stays unread would take the answer with it


def _send(near: socket.socket, status: str, why: str) -> None:
    body = f"{why}\n".encode()
    near.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


def variables(port: int) -> dict[str, str]:
    """Return the variables by which programs find a proxy on this port of 127.0.0.1."""
    url = f"http://127.0.0.1:{port}"
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    return dict.fromkeys(names, url) | {"NO_PROXY": "", "no_proxy": ""}


# Whether an address is this machine's own.


# linux/rtnetlink.h, linux/netlink.h
_GET_ROUTE, _NEW_ROUTE, _REQUEST, _ERROR, _TO = 26, 24, 1, 2, 1
_UNICAST = 1
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBBBBBI"), struct.Struct("=HH")
_ANSWER_S = 5.0


def is_own(address: str) -> bool:
    """Return whether packets to this address, or to the IPv4 address that is written within it, stay on this machine.

    Errors: OSError, where there is no route to it, or the kernel does not say.
    """
    to, *within = map(str, sandbox_policy.meant(address))
    interfaces = {each.address for some in psutil.net_if_addrs().values() for each in some}
    if not interfaces.isdisjoint((to, *within)) or _kind_of_route(to) != _UNICAST:
        return True
    with suppress(OSError):  # a network that translates needs no route to it
        return any(_kind_of_route(one) != _UNICAST for one in within)
    return False


def _kind_of_route(address: str) -> int:
    """Return the type of the route that a connection to it would take (RTN_…). Errors: OSError."""
    to = ip_address(address)
    family = socket.AF_INET if to.version == 4 else socket.AF_INET6
    route = _ROUTE.pack(family, to.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body = route + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(to.packed), _TO) + to.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_ANSWER_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _REQUEST, 1, 0) + body)
        answer = kernel.recv(1 << 16)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        raise OSError(number, os.strerror(number))
    if kind != _NEW_ROUTE:
        raise OSError(f"the kernel answered with a message of type {kind} when it was asked for a route")
    return int(_ROUTE.unpack_from(answer, _HEADER.size)[7])
