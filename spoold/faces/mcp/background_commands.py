"""run_background, check_background, list_background and kill_background: commands on a worker.

Law: a command runs once unless it is told to be tried again; its output is read from the end of its log, whatever the
log's size.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spoold.client.read.attempt_logs import last_bytes
from spoold.client.read.task_info import result_of
from spoold.faces.mcp import delegation
from spoold.faces.mcp.delegation import submit
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.task_answers import OUTPUT_MOST, Submitted, Word, ending, status_of
from spoold.faces.mcp.tasks import CancelTask, ListTasks, Page, Requested, cancel, listed
from spoold.faces.mcp.tool import (
    NUMBER,
    TAIL_LINES,
    TAIL_MOST,
    TIMEOUT_MS,
    Answer,
    Arguments,
    Command,
    Cwd,
    Id,
    Key,
    Label,
    Retries,
    SomeIds,
    Timeout,
    Tool,
    Variables,
)
from spoold.protocol.lifecycle import ENDED

# Of a log, the last part that is read.
LOG_MOST = 256 << 10


class RunBackground(Arguments):
    """The arguments of run_background."""

    command: Command
    cwd: Cwd | None = None
    timeout: Timeout = TIMEOUT_MS
    label: Label | None = None
    env: Variables = {}
    after: SomeIds = Field(default=(), description="It starts when these tasks of yours have completed.")
    retries: Retries = 0
    idempotencyKey: Key | None = None


class CheckBackground(Arguments):
    """The arguments of check_background."""

    taskId: Id
    tailLines: Annotated[int, Field(ge=0, le=TAIL_MOST, description="So many lines of its output."), NUMBER] = (
        TAIL_LINES
    )


class ListBackground(ListTasks):
    """The arguments of list_background."""


class KillBackground(CancelTask):
    """The arguments of kill_background."""


class Checked(Answer):
    """What a command does, and the end of its output."""

    taskId: str
    status: Word
    state: str
    finished: bool
    output: str = Field(description="The last lines of stdout and stderr.")
    truncated: bool = Field(description="There is more; the resource spool://task/{taskId}/log has it.")
    exitCode: int | None
    attempt: int
    worker: str
    message: str


def run(session: Session, arguments: RunBackground) -> Submitted:
    """Submit a command. Errors: NotFound for a task in `after`, BadFile, SpoolError."""
    if arguments.after:
        session.reach.find_all(arguments.after)
    draft = delegation.command_task(arguments.command) | delegation.given(
        label=arguments.label,
        cwd=arguments.cwd,
        env=arguments.env,
        timeout=arguments.timeout,
        retries=arguments.retries,
        after=arguments.after,
    )
    task_id, created = submit(session, draft, arguments.idempotencyKey)
    said = (
        f"{task_id} is submitted. check_background shows its output." if created else f"{task_id} was there before."
    )
    return Submitted(taskId=task_id, created=created, message=said)


def check(session: Session, arguments: CheckBackground) -> Checked:
    """Return the status of a command and the end of its output. Errors: NotFound."""
    located = session.reach.find(arguments.taskId)
    store = session.spool.store
    with session.spool.reaching():
        piece = last_bytes(store, located.id, LOG_MOST)
        result = result_of(store, located.id) if located.state in ENDED else None
        status = status_of(session, located) if result is None else ending(result)
    data = b"" if piece is None else piece.data
    lines = data.decode(errors="replace").splitlines(keepends=True)
    text = "".join(lines[len(lines) - arguments.tailLines :] if arguments.tailLines < len(lines) else lines)
    error = "" if result is None or result.error is None else f" ({result.error.code}: {result.error.message})"
    return Checked(
        taskId=located.id,
        status=status,
        state=located.state.value,
        finished=result is not None,
        output=text[-OUTPUT_MOST:],
        truncated=arguments.tailLines < len(lines) or len(data) >= LOG_MOST or len(text) > OUTPUT_MOST,
        exitCode=None if result is None else result.exit_code,
        attempt=located.attempt,
        worker=located.node,
        message=f"{located.id}: {status}{error}.",
    )


def listed_commands(session: Session, arguments: ListBackground) -> Page:
    """Return a page of the caller's commands. Errors: Unavailable."""
    return listed(session, arguments, "command")


RUN_BACKGROUND = Tool(
    "run_background",
    "Run a command in the background",
    "Run a command on a worker of the pool. Returns its taskId at once. A worker runs commands only if its "
    "configuration allows them; explain_task says if none does.",
    RunBackground,
    Submitted,
    run,
)
CHECK_BACKGROUND = Tool(
    "check_background",
    "Check a command",
    "The status of a command, the last lines of its output, and its exit code once it has ended. It never waits.",
    CheckBackground,
    Checked,
    check,
    reads=True,
)
LIST_BACKGROUND = Tool(
    "list_background",
    "List your commands",
    "The commands that you run with run_background or submit_tasks, with their status.",
    ListBackground,
    Page,
    listed_commands,
    reads=True,
)
KILL_BACKGROUND = Tool(
    "kill_background",
    "Kill a command",
    "End a command with all its processes. One that has ended stays as it is.",
    KillBackground,
    Requested,
    cancel,
    destroys=True,
    repeats=True,
)
