"""wait_tasks: wait until tasks have ended, or one of them.

Law: it says what is still open, and why. A task that failed has ended, and is no error of the call.
"""

from __future__ import annotations

from typing import Literal

import anyio.to_thread
from pydantic import Field

from spoold.client.read.long_listing import describe
from spoold.faces.mcp.arguments import Arguments, Ids, Wait, bounded_s
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Notify, Tool
from spoold.faces.mcp.views import TaskResult, TaskRow, finished, row_of
from spoold.faces.mcp.waits import NO_SLOT, wait_for
from spoold.protocol.amount import amount
from spoold.protocol.names import key

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
