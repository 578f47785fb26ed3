"""Sockets, uvicorn and its bounds, and the URL that opens the pages.

Law: it listens on loopback, or on a Unix socket that only this user can open; on another address only if the user has
said twice that others on the network may then read and change what passes. Every connection, header, body and answer
has a bound in size and in time.

Touches: files, processes, threads, the network, the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from spoold.client.view import Watch
from spoold.faces.web import acting, assets
from spoold.faces.web.entrance import Entrance
from spoold.faces.web.guard import ENTER, HOSTS, Guard, anchored, any_port
from spoold.faces.web.pages import batches, happenings, listing, logs, one_task, overview, pool
from spoold.faces.web.site import Site, application, routes_of
from spoold.faces.web.updates import Updates
from spoold.protocol.errors import SpoolError

CONNECTIONS_MOST = 128
# How long (s) a client may take to say a request, and a connection may say nothing between two.
REQUEST_S, IDLE_S = 10.0, 30
LEAVES_WITHIN_S = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where it listens. path: of a Unix socket, '' for a port; listening: None for nothing that listens yet."""

    host: str = ""
    port: int = 0
    path: str = ""
    listening: socket.socket | None = None

    def url(self, token: str) -> str:
        """Return the URL that opens the pages once."""
        name = "localhost" if self.path else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}{'' if self.path else f':{self.port}'}{ENTER}?token={token}"


class Bounded(H11Protocol):
    """A connection that must say its next request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to count."""
        super().connection_made(transport)
        self._silent, self._first = False, True
        self._check = self.loop.call_later(REQUEST_S, self._look)

    def _look(self) -> None:
        """Close a connection that has had no whole request since the last look; idle ones are closed by uvicorn."""
        cycle: Any = self.cycle  # None before the first request
        waits = cycle is None or (cycle.response_complete and self.timeout_keep_alive_task is None)
        if waits and (self._silent or self._first):
            self.transport.close()
            return
        self._first = False
        self._silent = waits
        self._check = self.loop.call_later(REQUEST_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count no more."""
        self._check.cancel()
        super().connection_lost(exc)


def routes(site: Site, updates: Updates | None = None) -> list[BaseRoute]:
    """Return all routes."""
    site.edition, site.told = assets.edition(), acting.told
    made = routes_of(
        site,
        [
            ("/", overview.show),
            ("/tasks", listing.show),
            ("/batches", batches.show_all),
            ("/nodes", pool.nodes),
            ("/gates", pool.gates),
            ("/events", happenings.events),
            ("/alerts", happenings.alerts),
        ],
    )
    made += routes_of(
        site,
        [
            ("/asks", happenings.asks),
            ("/batch", batches.show),
            ("/tasks/{task}", one_task.show),
            ("/tasks/{task}/history", one_task.history),
            ("/tasks/{task}/log", logs.show),
            ("/tasks/{task}/log/lines", logs.new_lines),
        ],
        reads=True,
    )
    made += [
        Route("/tasks/{task}/log/file", logs.download(site), methods=["GET"]),
        Route("/batch/{kind}.svg", batches.picture(site), methods=["GET"]),
        assets.mount(),
        *acting.routes(site),
    ]
    if updates is not None:
        made.append(Route("/updates", updates.endpoint, methods=["GET"]))
    return made


def guarded(site: Site, entrance: Entrance, place: Place, updates: Updates | None = None) -> ASGIApp:
    """Return the whole application, with its guard."""
    lives = updates.living if updates is not None else None
    if place.path:
        is_host = any_port()
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
        http=Bounded,
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS_MOST,
        timeout_keep_alive=IDLE_S,
        h11_max_incomplete_event_size=32 << 10,
        timeout_graceful_shutdown=LEAVES_WITHIN_S,
    )
    server = _Server(config, updates)
    # When it has stopped, the server raises the signal again: the spool is to be left clean all the same.
    signal.signal(signal.SIGTERM, _leave)
    say(place.url(entrance.token()))
    if wanted is not None:
        threading.Thread(target=_renew, args=(place, entrance, say, wanted), daemon=True).start()
    try:
        server.run(sockets=[place.listening] if place.listening is not None else None)
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


def listen(host: str, port: int, *, unencrypted: bool = False) -> Place:
    """Return a port that listens. unencrypted: an address that is not loopback is allowed. Errors: SpoolError."""
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
    made = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(CONNECTIONS_MOST)
    except OSError as error:
        made.close()
        said = f"--port: {host}:{port} cannot be used: {error.strerror}."
        raise SpoolError(f"{said} Fix: give another one; --port 0 takes any that is free.") from error
    return Place(str(address), int(made.getsockname()[1]), listening=made)


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
        made.listen(CONNECTIONS_MOST)
    except SpoolError:
        made.close()
        raise
    except OSError as error:
        made.close()
        said = error.strerror or str(error)
        raise SpoolError(f"--socket: {path} cannot be used: {said}. Fix: give another path.") from error
    finally:
        os.umask(mask)
    return Place(path=path, listening=made)


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
