"""What pages ask: the view of the spool, the client for actions, and the time; each call in a thread of its own.

So the keys work while a share does not answer.

Law: a page asks nothing else. Nothing here writes to the spool but `spoold.faces.top.actions`. No call is waited for
at the end: a thread that hangs in a mount that is gone must not keep the screen open. So these are daemon threads,
and not those of asyncio's executor, which a program joins before it ends.

Touches: threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from spoold.protocol.errors import SpoolError, Unavailable

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.client.view import View


T = TypeVar("T")
KEPT = 100
# So long (s) is waited for an answer before the page is shown without it.
SOON_S = 0.3


@dataclass
class Source:
    """One spool, for all pages. now: the wall clock, in seconds."""

    view: View
    spool: SpoolClient
    now: Callable[[], float]
    read_only: bool = False

    def __post_init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}
        self._busy: set[str] = set()

    def soon(self, name: str, ask: Callable[[], T], *, for_s: float) -> T | SpoolError | None:
        """Return what was asked under this name at most so long ago, or what was known before; None where it is still
        being read: of a large spool that may take minutes, and nobody is to wait for it.
        """
        at, value = self._kept.get(name, (float("-inf"), None))
        if self.now() - at >= for_s and name not in self._busy:
            self._busy.add(name)
            thread = threading.Thread(target=self._ask, args=(name, ask), name="spool-top", daemon=True)
            thread.start()
            thread.join(SOON_S)
            value = self._kept.get(name, (0.0, value))[1]
        return value  # type: ignore[no-any-return]

    def _ask(self, name: str, ask: Callable[[], Any]) -> None:
        try:
            found = ask()
        except SpoolError as error:
            found = error
        finally:
            self._busy.discard(name)
        self._kept[name] = (self.now(), found)
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def last(self, name: str, ask: Callable[[], T]) -> T:
        """Return what `ask` returns, or while the share does not answer what it returned last. Errors: Unavailable
        where it has never returned anything.
        """
        try:
            value = ask()
        except Unavailable:
            if name not in self._kept:
                raise
            return self._kept[name][1]  # type: ignore[no-any-return]
        self._kept[name] = (self.now(), value)
        return value


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a page is on the screen: columns, lines, and the first row that is seen."""

    width: int
    height: int
    first: int = 0


# Calls that may block, each in a thread of its own, so that the keys work while a share does not answer.


async def aside(call: Callable[[], T]) -> T:
    """Return what the call returns, or raise what it raises, without blocking the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits for it any more
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, failed = None, None
        try:
            value = call()
        except Exception as error:  # noqa: BLE001 - the caller gets it
            failed = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=run, name="spool-top", daemon=True).start()
    return await future


class OneFlight:
    """At most one call at a time; of those that are asked for meanwhile, the last is made afterwards."""

    def __init__(self) -> None:
        self._next: Callable[[], Awaitable[None]] | None = None
        self.flying = False

    async def run(self, call: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        """Make the call aside, and hand its result, or its error, to `then`."""

        async def fly() -> None:
            found: T | Exception
            try:
                found = await aside(call)
            except Exception as error:  # noqa: BLE001 - `then` tells it
                found = error
            then(found)

        self._next = fly
        if self.flying:
            return
        self.flying = True
        try:
            while self._next is not None:
                wanted, self._next = self._next, None
                await wanted()
        finally:
            self.flying = False
