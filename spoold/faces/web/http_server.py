"""Sockets, uvicorn and its bounds, the connections and their trouble, and the URL that opens the pages.

Law: it listens on loopback, or on a Unix socket that only this user can open; on another address only if the user has
said twice that others on the network may then read and change what passes. Every connection, header, body and answer
has a bound in size and in time. Who has not shown a cookie cannot keep out who has: strangers are counted apart, and
the oldest makes room. A connection that says nothing, or whose reader takes nothing, ends.

Touches: files, processes, threads, the clock, the network, the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import ipaddress
import logging
import os
import resource
import secrets
import signal
import socket
import stat
import string
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from spoold.client.view import Watch
from spoold.faces.web import action_pages, assets, batch_pages, pool_pages, task_pages
from spoold.faces.web.security import ENTER, HOSTS, Entrance, Guard, anchored, any_port
from spoold.faces.web.site import Site, application, routes_of
from spoold.faces.web.updates import Updates
from spoold.protocol.errors import SpoolError

# How long (s) a connection may say nothing between two requests.
IDLE_S = 30
# Tries to find a port that is free for both kinds of loopback.
TRIES = 50
LEAVES_WITHIN_S = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where it listens. path: of a Unix socket, '' for a port; listening: empty for nothing that listens yet.

    name: a host name that nobody else knows, since a browser sends a cookie to every port of a name; '' where the
    address itself is the name.
    """

    host: str = ""
    port: int = 0
    path: str = ""
    listening: tuple[socket.socket, ...] = ()
    name: str = ""

    def url(self, token: str) -> str:
        """Return the URL that opens the pages once."""
        name = self.name or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"http://{name}{'' if self.path else f':{self.port}'}{ENTER}?token={token}"


def secret_name() -> str:
    """Return a name that browsers take to loopback by themselves (RFC 6761), and that nobody can guess."""
    return f"spool-{''.join(secrets.choice(string.ascii_lowercase + '234567') for _ in range(20))}.localhost"


def routes(site: Site, updates: Updates | None = None) -> list[BaseRoute]:
    """Return all routes."""
    site.edition, site.told = assets.edition(), action_pages.told
    made = routes_of(
        site,
        [
            ("/", pool_pages.show_overview),
            ("/tasks", task_pages.show_list),
            ("/batches", batch_pages.show_all),
            ("/nodes", pool_pages.nodes),
            ("/gates", pool_pages.gates),
            ("/events", pool_pages.events),
            ("/alerts", pool_pages.alerts),
        ],
    )
    made += routes_of(
        site,
        [
            ("/asks", pool_pages.asks),
            ("/batch", batch_pages.show_batch),
            ("/tasks/{task}", task_pages.show_task),
            ("/tasks/{task}/history", task_pages.history),
            ("/tasks/{task}/log", task_pages.show_log),
            ("/tasks/{task}/log/lines", task_pages.new_lines),
        ],
        reads=True,
    )
    made += [
        Route("/tasks/{task}/log/file", Few(request_response(task_pages.download(site))), methods=["GET"]),
        Route("/batch/{kind}.svg", batch_pages.picture(site), methods=["GET"]),
        assets.mount(),
        *action_pages.routes(site),
    ]
    if updates is not None:
        made.append(Route("/updates", updates.endpoint, methods=["GET"]))
    return made


def guarded(site: Site, entrance: Entrance, place: Place, updates: Updates | None = None) -> ASGIApp:
    """Return the whole application, with its guard."""
    lives = updates.living if updates is not None else None
    if place.path:
        is_host = any_port((place.name,))
    elif place.name:
        is_host = anchored({f"{place.name}:{place.port}"} | ({place.name} if place.port == 80 else set()))
    else:
        names = {*HOSTS} if _is_loopback(place.host) else {f"[{place.host}]" if ":" in place.host else place.host}
        bare = names if place.port == 80 else set()
        is_host = anchored({f"{name}:{place.port}" for name in names} | bare)
    return Guard(application(routes(site, updates), site, lives), entrance, is_host)


def run(
    site: Site, watch: Watch, place: Place, say: Callable[[str], None], wanted: Callable[[], bool] | None = None
) -> None:
    """Serve until a signal ends it. say: gets each URL; wanted: waits until a person wants another one, False for
    never more; None where nobody can. Errors: SpoolError.
    """
    entrance = Entrance(place.path or str(place.port))
    updates = Updates(site.view, watch)
    config = uvicorn.Config(
        guarded(site, entrance, place, updates),
        http=cast(type[Bounded], functools.partial(Bounded, crowd=Crowd(entrance.knows))),
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        h11_max_incomplete_event_size=32 << 10,
        timeout_graceful_shutdown=LEAVES_WITHIN_S,
    )
    server = _Server(config, updates)
    prepare()
    # When it has stopped, the server raises the signal again: the spool is to be left clean all the same.
    signal.signal(signal.SIGTERM, _leave)
    say(place.url(entrance.token()))
    if wanted is not None:
        threading.Thread(target=_renew, args=(place, entrance, say, wanted), daemon=True).start()
    try:
        server.run(sockets=list(place.listening) or None)
    finally:
        site.later.close()
        if place.path:
            with contextlib.suppress(OSError):
                os.unlink(place.path)


class _Server(uvicorn.Server):
    """Ends the streams before it waits for what is under way: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, updates: Updates) -> None:
        super().__init__(config)
        self._updates = updates

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As of uvicorn."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(QUEUE)  # asyncio has said the number that it accepts in one go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As of uvicorn."""
        self._updates.close()
        await super().shutdown(sockets)


def _renew(place: Place, entrance: Entrance, say: Callable[[str], None], wanted: Callable[[], bool]) -> None:
    while wanted():
        say(place.url(entrance.token()))


def _leave(*_: object) -> None:
    sys.exit(0)


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback


def listen(host: str | None, port: int, *, unencrypted: bool = False) -> Place:
    """Return a port that listens: on loopback under a name of its own, or on an address. unencrypted: an address that
    is not loopback is allowed. Errors: SpoolError.
    """
    if host is None:
        both = _listen_on_both(port)
        return Place("127.0.0.1", int(both[0].getsockname()[1]), listening=both, name=secret_name())
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise SpoolError(
            f"--host: {host!r} is no IP address. Fix: leave it out, or give one of this machine."
        ) from None
    if address.is_unspecified:
        raise SpoolError(f"--host: {host} is every address. Fix: give the one by which the page is to be opened.")
    if not address.is_loopback and not unencrypted:
        raise SpoolError(
            f"--host: {host} is not loopback: everyone on the way could read the pages and the cookie, and use them. "
            "Fix: leave --host out and use `ssh -L`; or say --unencrypted as well."
        )
    try:
        made = _bound(str(address), port)
    except OSError as error:
        raise _taken(f"{host}:{port}", error) from error
    return Place(str(address), int(made.getsockname()[1]), listening=(made,))


def _listen_on_both(port: int) -> tuple[socket.socket, ...]:
    """Listen on both kinds of loopback, where there are both: a browser tries each for a name, and anyone who had the
    other one would get what is meant for us.
    """
    for _ in range(TRIES):
        try:
            made = _bound("127.0.0.1", port)
        except OSError as error:
            raise _taken(f"127.0.0.1:{port}", error) from error
        number = int(made.getsockname()[1])
        try:
            return made, _bound("::1", number)
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                return (made,)
            made.close()
            if port or error.errno != errno.EADDRINUSE:
                raise _taken(f"[::1]:{number}", error) from error
    raise SpoolError("--port: no port is free on both 127.0.0.1 and ::1. Fix: give one with --port.")


def _bound(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _taken(where: str, error: OSError) -> SpoolError:
    said = f"--port: {where} cannot be used: {error.strerror}."
    return SpoolError(f"{said} Fix: give another one; --port 0 takes any that is free.")


def listen_at(path: str) -> Place:
    """Return a Unix socket that listens, which only this user can open. Errors: SpoolError."""
    path = os.path.abspath(path)
    made = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        if os.path.lexists(path):
            _remove_old(path)
        made.bind(path)
        os.chmod(path, 0o600)
        made.listen(BACKLOG)
    except SpoolError:
        made.close()
        raise
    except OSError as error:
        made.close()
        said = error.strerror or str(error)
        raise SpoolError(f"--socket: {path} cannot be used: {said}. Fix: give another path.") from error
    finally:
        os.umask(mask)
    return Place(path=path, listening=(made,), name=secret_name())


def _remove_old(path: str) -> None:
    """Remove the socket of a server that is gone. Errors: SpoolError for anything else; OSError."""
    found = os.lstat(path)
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise SpoolError(f"--socket: {path} is there already and is no socket of yours. Fix: give another path.")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise SpoolError(f"--socket: another server listens at {path}. Fix: end it, or give another path.")


# How many connections there are, how long each may take, and what their trouble says on the terminal.


# How many that have shown no cookie, and how many that have.
STRANGERS_MOST, KNOWN_MOST = 64, 192
# So many are accepted in one go, which bounds the descriptors; so many more may wait for that in the kernel.
BACKLOG, QUEUE = 32, 1024
# How long (s) a client may take to say a request, and for how many times that its reader may take nothing.
REQUEST_S, STUCK_MOST = 10.0, 3
# So many downloads at once.
DOWNLOADS_MOST = 4
# How long (s) the terminal hears no more of the same trouble.
QUIET_S = 60.0
_NO_MORE = "socket.accept() out of system resource"
_ENDS = "Cancel %s running task(s), timeout graceful shutdown exceeded"


class Crowd:
    """The connections of a server. knows: whether one of the Cookie headers of a request is ours."""

    def __init__(self, knows: Callable[[Iterable[bytes]], bool]) -> None:
        self._knows = knows
        self.strangers: dict[Bounded, None] = {}
        self.known: dict[Bounded, None] = {}

    def came(self, one: Bounded) -> None:
        """Count a new one; the oldest that waits makes room for it."""
        self.strangers[one] = None
        self._make_room(self.strangers, STRANGERS_MOST)

    def spoke(self, one: Bounded) -> None:
        """Count one that has said a request as known if that had a cookie of ours."""
        if one in self.strangers and self._knows([value for name, value in one.headers if name == b"cookie"]):
            del self.strangers[one]
            self.known[one] = None
            self._make_room(self.known, KNOWN_MOST)

    def left(self, one: Bounded) -> None:
        """Count one no more."""
        self.strangers.pop(one, None)
        self.known.pop(one, None)

    @staticmethod
    def _make_room(among: dict[Bounded, None], most: int) -> None:
        if len(among) > most:
            oldest = min(among, key=lambda one: not one.waits)
            del among[oldest]
            oldest.transport.abort()


class Bounded(H11Protocol):
    """A connection that must say its next request in time, and read what it asked for."""

    def __init__(self, *args: Any, crowd: Crowd, **more: Any) -> None:
        super().__init__(*args, **more)
        self._crowd = crowd

    @property
    def waits(self) -> bool:
        """Whether it has asked for nothing that is still to be answered."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or bool(cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to count."""
        super().connection_made(transport)
        self._silent, self._first = False, True
        self._unread, self._stuck = 0, 0
        self._check = self.loop.call_later(REQUEST_S, self._look)
        self._crowd.came(self)

    def data_received(self, data: bytes) -> None:
        """Read on, and look who asks."""
        before = self.headers
        super().data_received(data)
        if self.headers is not before:
            self._crowd.spoke(self)

    def resume_writing(self) -> None:
        """The reader has read."""
        self._stuck = 0
        super().resume_writing()

    def _look(self) -> None:
        """Close a connection that has had no whole request since the last look; idle ones are closed by uvicorn."""
        self._check = self.loop.call_later(REQUEST_S, self._look)
        unread = self.transport.get_write_buffer_size()
        self._stuck = self._stuck + 1 if unread and unread >= self._unread else 0
        self._unread = unread
        if self._stuck >= STUCK_MOST:
            self.transport.abort()
            return
        waits = self.waits and self.timeout_keep_alive_task is None
        if waits and (self._silent or self._first):
            self.transport.close()
        self._first = False
        self._silent = waits

    def connection_lost(self, exc: Exception | None) -> None:
        """Count no more."""
        self._check.cancel()
        self._crowd.left(self)
        super().connection_lost(exc)


class Few:
    """An application that answers few requests at once, since each may take long."""

    def __init__(self, app: ASGIApp, most: int = DOWNLOADS_MOST) -> None:
        self._app, self._most, self._present = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that there are too many."""
        if self._present >= self._most:
            said = PlainTextResponse("too many downloads at once.\n", 503, {"Retry-After": "30"})
            await said(scope, receive, send)
            return
        self._present += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._present -= 1


class Calm(logging.Filter):
    """Tells once a minute, in one line, that the machine gives no more connections; and nothing of its own ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._told = clock, -QUIET_S

    def filter(self, record: logging.LogRecord) -> bool:
        """As of logging."""
        cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
        if record.msg == _ENDS or cut_off:
            return False
        if not str(record.msg).startswith(_NO_MORE):
            return True
        record.msg, record.args, record.exc_info = "spool web: no file descriptor is left; browsers wait", None, None
        if self._clock() - self._told < QUIET_S:
            return False
        self._told = self._clock()
        return True


def prepare() -> None:
    """Allow as many descriptors as may be, and keep the terminal calm."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(Calm())
