"""Waiting for tasks, cut before a client gives up.

Law: a wait never blocks the server. It ends when it is cancelled, and reports progress while it lasts.

Touches: the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from spoold.client.spool.waiting import Waiter
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Notify
from spoold.protocol.result import Result

# After a wait of 45 s its slot may take so long to come back.
SLOT_WITHIN_S = 3.0
NOTIFY_EVERY_S = 5.0
NO_SLOT = (
    "The slot of your own task was lent while you waited, and another task still has it: "
    "do nothing else yet, and call wait_tasks again."
)


@dataclass(slots=True)
class Waited:
    """What a wait found. slot: whether the caller's own task has its slot back."""

    results: dict[str, Result] = field(default_factory=dict)
    slot: bool = True


async def wait_for(session: Session, ids: list[str], wait_s: float, notify: Notify, *, first: bool = False) -> Waited:
    """Wait for tasks that are within reach. first: only until one of them has ended. Errors: Unavailable."""
    waiter = Waiter(session.spool.store, ids, session.spool.dropped)
    waited, until, told_at = Waited(), time.monotonic() + wait_s, 0.0
    look = partial(_look, session, waiter)
    await anyio.to_thread.run_sync(waiter.look_in_archive, abandon_on_cancel=True)
    async with session.slot.lent() as pause:
        while True:
            came = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
            waited.results |= came
            now = time.monotonic()
            if came or now - told_at >= NOTIFY_EVERY_S:
                told_at, count = now, len(waited.results)
                await notify(count, len(ids), f"{count} of {len(ids)} have ended")
            left_s = until - time.monotonic()
            if not waiter.pending or (first and waited.results) or left_s <= 0:
                break
            await pause(min(waiter.pace.pause_s(), left_s))
    waited.slot = await session.slot.back(SLOT_WITHIN_S)
    return waited


async def look_at(session: Session, ids: list[str]) -> dict[str, Result]:
    """Return the results of the tasks that have ended by now; nothing is waited for. Errors: Unavailable."""
    waiter = Waiter(session.spool.store, ids, session.spool.dropped)
    await anyio.to_thread.run_sync(waiter.look_in_archive, abandon_on_cancel=True)
    return await anyio.to_thread.run_sync(partial(_look, session, waiter), abandon_on_cancel=True)


def _look(session: Session, waiter: Waiter) -> dict[str, Result]:
    nothing: dict[str, Result] = {}
    with session.spool.reaching():
        return waiter.pace.forgiving(waiter.poll, nothing)
