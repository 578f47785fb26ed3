"""The slot of the caller's own task: lent while at least one of its calls waits.

Law: a call that has lent the slot asks for it back before it answers, and says so if it did not come in time: a
client gives up on a call that takes a minute.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from spoold.client.inside import LEND_AFTER_S, SlotLoan

LOOK_EVERY_S = 0.05
Pause = Callable[[float], Awaitable[None]]


class Slot:
    """One task's slot, for all calls of one server; it belongs to the server's event loop."""

    def __init__(self, loan: SlotLoan | None = None) -> None:
        self._loan = SlotLoan() if loan is None else loan
        self._waits = 0

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Pause]:
        """Wrap a wait. Yields what it pauses with, which lends the slot of a wait that is not over at once."""
        since = time.monotonic()

        async def pause(seconds: float) -> None:
            if time.monotonic() - since >= LEND_AFTER_S:
                self._loan.lend()
            await anyio.sleep(seconds)

        self._waits += 1
        try:
            yield pause
        finally:
            self._waits -= 1
            if not self._waits:
                self._loan.ask_back()

    async def back(self, within_s: float) -> bool:
        """Return whether the task may go on; waits so long (s) for its slot. True while other calls still wait."""
        until = time.monotonic() + within_s
        while not self._waits and not self._loan.is_back():
            if time.monotonic() >= until:
                return False
            await anyio.sleep(LOOK_EVERY_S)
        return True
