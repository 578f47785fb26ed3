"""Calls that may block, each in a thread of its own, so that the keys work while a share does not answer.

Law: no call is waited for at the end: a thread that hangs in a mount that is gone must not keep the screen open. So
these are daemon threads, and not those of asyncio's executor, which a program joins before it ends.

Touches: threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


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
