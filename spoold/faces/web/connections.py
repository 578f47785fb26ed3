"""How many connections there are, how long each may take, and what their trouble says on the terminal.

Law: who has not shown a cookie cannot keep out who has: strangers are counted apart, and the oldest makes room. A
connection that says nothing, or whose reader takes nothing, ends.

Touches: processes, the clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import time
from collections.abc import Callable, Iterable
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

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
