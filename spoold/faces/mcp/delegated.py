"""delegate_task: one task for an agent, in the background or waited for.

Law: what an agent is, the workers say: a task names a type, and a worker that has a handler for it runs it.
"""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from spoold.faces.mcp import drafts
from spoold.faces.mcp.arguments import Arguments, Cwd, Key, Label, SomeIds, Timeout, Wait, bounded_s
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.submitting import submit
from spoold.faces.mcp.tool import Answer, Notify, Tool
from spoold.faces.mcp.views import TaskResult, finished
from spoold.faces.mcp.waits import NO_SLOT, look_at, wait_for
from spoold.protocol.errors import SpoolError

Prompt = Annotated[str, Field(min_length=1, max_length=1_000_000, description="What it is to do.")]
Agent = Annotated[
    str,
    Field(min_length=1, max_length=60, description="Who does it: a type for which a worker has a handler."),
]


class DelegateTask(Arguments):
    """The arguments of delegate_task."""

    agent: Agent
    prompt: Prompt
    description: Label | None = None
    input: dict[str, Any] = Field(default={}, description="More fields of the task's input, beside the prompt.")
    after: SomeIds = Field(default=(), description="It starts when these tasks of yours have completed.")
    cwd: Cwd | None = None
    timeout: Timeout | None = None
    anyway: bool = Field(default=False, description="Submit it, though nothing here knows an agent of that name.")
    background: bool = Field(default=True, description="true: return at once. false: wait for it.")
    wait: Wait = Field(default=45_000)
    idempotencyKey: Key | None = None


class Delegated(Answer):
    """A task that was delegated. result: where it has ended, and was waited for or submitted before."""

    taskId: str
    created: bool
    finished: bool
    message: str
    result: TaskResult | None = None


async def delegate(session: Session, arguments: DelegateTask, notify: Notify) -> Delegated:
    """Submit a task for an agent, and wait for it if told to. Errors: SpoolError."""
    task_id, created, waits = await anyio.to_thread.run_sync(_submit, session, arguments)
    if arguments.background:
        found = None if created else (await look_at(session, [task_id])).get(task_id)
        result = None if found is None else finished(found)
        said = f"{task_id} is submitted. wait_tasks waits for it." if created else f"{task_id} was submitted before."
        said = f"{said}{waits}" if result is None else f"{said} {result.message}"
        return Delegated(taskId=task_id, created=created, finished=result is not None, message=said, result=result)
    waited = await wait_for(session, [task_id], bounded_s(arguments.wait), notify)
    found = waited.results.get(task_id)
    result = None if found is None else finished(found)
    said = f"{task_id} has not ended yet: call wait_tasks.{waits}" if result is None else result.message
    said = said if waited.slot else f"{said} {NO_SLOT}"
    return Delegated(taskId=task_id, created=created, finished=result is not None, message=said, result=result)


def _submit(session: Session, arguments: DelegateTask) -> tuple[str, bool, str]:
    """Return the id of the task, whether it is new, and what it waits for if no live worker has its agent.

    Errors: SpoolError.
    """
    missing = session.spool.missing_agent(arguments.agent)
    if missing is not None and missing.unknown and not arguments.anyway:
        raise SpoolError(
            f"agent: {missing.problem} Fix: {missing.fix} With anyway it is submitted, and waits for one."
        )
    if arguments.after:
        session.reach.find_all(arguments.after)
    draft = drafts.agent_task(arguments.agent, arguments.prompt, arguments.input) | drafts.given(
        label=arguments.description, cwd=arguments.cwd, timeout=arguments.timeout, after=arguments.after
    )
    task_id, created = submit(session, draft, arguments.idempotencyKey)
    waits = "" if missing is None else f" It waits: {missing.problem} {missing.fix}"
    return task_id, created, waits


DELEGATE_TASK = Tool(
    "delegate_task",
    "Delegate a task to an agent",
    "Give a task to another agent of the pool. Returns its taskId at once; with background false it waits for the "
    "result, at most 45 s. It needs a worker with a handler for that agent: the message says if none has one now. A "
    "name that nothing knows is refused.",
    DelegateTask,
    Delegated,
    delegate,
    waits=True,
)
