"""wait_tasks, and waiting for tasks: cut before a client gives up.

Law: a wait never blocks the server. It ends when it is cancelled, and reports progress while it lasts. wait_tasks
says what is still open, and why. A task that failed has ended, and is no error of the call.

Touches: the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import anyio.to_thread
from pydantic import Field

from spoold.client.read.long_listing import describe
from spoold.client.spool.waiting import Waiter
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.task_answers import TaskResult, TaskRow, finished, row_of
from spoold.faces.mcp.tool import Answer, Arguments, Ids, Notify, Tool, Wait, bounded_s
from spoold.protocol.amount import amount
from spoold.protocol.names import key
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


# wait_tasks: wait until tasks have ended, or one of them.


# Of so many open tasks it says what they wait for.
OPEN_SHOWN = 50


class WaitTasks(Arguments):
    """The arguments of wait_tasks."""

    taskIds: Ids
    timeout: Wait = 45_000
    mode: Literal["all", "any"] = Field(default="all", description="any: return as soon as one of them has ended.")


class Waits(Answer):
    """What has ended, and what has not."""

    done: bool = Field(description="What you waited for, all or any of them, has ended, and you may go on.")
    finished: list[TaskResult] = Field(description="Without their output, which get_task_result has.")
    open: list[TaskRow] = Field(description=f"What has not ended, and why; at most {OPEN_SHOWN} of them.")
    openCount: int
    message: str


async def wait(session: Session, arguments: WaitTasks, notify: Notify) -> Waits:
    """Wait for tasks within reach. Errors: NotFound, Unavailable."""
    found = await anyio.to_thread.run_sync(session.reach.find_all, arguments.taskIds)
    ids = [one.id for one in found]
    waited = await wait_for(session, ids, bounded_s(arguments.timeout), notify, first=arguments.mode == "any")
    rows = await anyio.to_thread.run_sync(_rows, session, [one for one in ids if one not in waited.results])
    open_count = len(ids) - len(waited.results)
    over = not open_count or (arguments.mode == "any" and bool(waited.results))
    if not open_count:
        said = f"All of {amount(len(ids), 'task')} have ended." if len(ids) > 1 else f"{ids[0]} has ended."
    elif over:
        said = f"{open_count} of {amount(len(ids), 'task')} not ended yet: to wait for another, name the open ones."
    else:
        said = f"{open_count} of {amount(len(ids), 'task')} not ended yet: call wait_tasks again, or explain_task."
    return Waits(
        done=over and waited.slot,
        finished=[finished(waited.results[one], output=False) for one in ids if one in waited.results],
        open=rows,
        openCount=open_count,
        message=said if waited.slot else f"{said} {NO_SLOT}",
    )


def _rows(session: Session, ids: list[str]) -> list[TaskRow]:
    if not ids:
        return []
    located = {key(one.id): one for one in session.reach.find_all(ids[:OPEN_SHOWN])}
    with session.spool.reaching():
        rows = describe(session.spool.store, located.values())
        return [row_of(session, located[key(row.id)], row) for row in rows]


WAIT_TASKS = Tool(
    "wait_tasks",
    "Wait for tasks",
    "Wait until all (or any) of these tasks have ended. A call is cut at 45 s: it then says what is still open, and "
    "you call it again. Within a task, your own slot is lent to others meanwhile.",
    WaitTasks,
    Waits,
    wait,
    waits=True,
    reads=True,
)
