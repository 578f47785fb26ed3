"""get_task_result, list_tasks, cancel_task, tell_task and explain_task.

Law: each looks or asks; what becomes of a task, the leader and the workers decide.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from spoold.client.read import preconditions
from spoold.client.read.long_listing import describe
from spoold.client.read.preconditions import when
from spoold.client.read.selecting import Located
from spoold.client.read.task_groups import cancel_tree
from spoold.client.read.task_info import kind_of, read_content, result_of
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.task_answers import TaskResult, TaskRow, finished, row_of, status_of, unfinished
from spoold.faces.mcp.tool import NUMBER, Answer, Arguments, Id, Reason, Tool
from spoold.protocol.agent_messages import TEXT_MAX
from spoold.protocol.errors import WaitTimeout
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import key
from spoold.protocol.request import Verb

PAGE, PAGE_MOST = 50, 200
# A tree that goes on making tasks is cancelled so long (s): a call has to answer.
TREE_WITHIN_S = 40.0


class OneTask(Arguments):
    """The arguments of a tool for one task."""

    taskId: Id


class CancelTask(OneTask):
    """The arguments of cancel_task."""

    tree: bool = Field(
        default=False, description="Also all tasks that it submitted, and theirs; waits for their end."
    )
    reason: Reason = ""


class TellTask(OneTask):
    """The arguments of tell_task."""

    text: str = Field(min_length=1, max_length=TEXT_MAX, description="The message, at most 16 KiB.")


class ListTasks(Arguments):
    """The arguments of list_tasks."""

    status: Literal["all", "running", "completed", "error"] = Field(
        default="all", description="running: all that have not ended; error: also timeouts and cancelled tasks."
    )
    limit: Annotated[int, Field(ge=1, le=PAGE_MOST), NUMBER] = PAGE
    cursor: str = Field(default="", max_length=200, description="nextCursor of the page before.")


class Page(Answer):
    """Some of the tasks. nextCursor: for the next page, '' where there is none."""

    tasks: list[TaskRow]
    total: int
    nextCursor: str


class Requested(Answer):
    """A request about tasks."""

    taskId: str
    requested: list[str] = Field(description="The tasks of which an end was requested; none where all had ended.")
    message: str


class Told(Answer):
    """A message for the agent of a task."""

    taskId: str
    messageId: str
    message: str


class Why(Answer):
    """One reason why a task is in its state."""

    gate: str
    reason: str
    change: str = Field(description="What would change it.")


class Explained(Answer):
    """Why a task is in its state."""

    taskId: str
    state: str
    attempt: int
    verdict: str
    reasons: list[Why]
    lastLine: str = Field(description="The last line that a failed task wrote.")


def result(session: Session, arguments: OneTask) -> TaskResult:
    """Return the result of a task, or that it has none yet. Errors: NotFound."""
    located = session.reach.find(arguments.taskId)
    with session.spool.reaching():
        found = result_of(session.spool.store, located.id)
    return unfinished(located) if found is None else finished(found)


def listed(session: Session, arguments: ListTasks, kind: str = "") -> Page:
    """Return a page of the caller's tasks, by id. kind: only those of this type. Errors: Unavailable."""
    store = session.spool.store
    with session.spool.reaching():
        found = {key(one.id): one for one in session.reach.mine(kind) if _fits(one, arguments.status)}
        if kind:
            found = {name: one for name, one in found.items() if kind_of(read_content(store, one)) == kind}
        order = sorted(found)
        page = [name for name in order if name > arguments.cursor][: arguments.limit]
        rows = describe(store, [found[name] for name in page])
        tasks = [row_of(session, found[name], row) for name, row in zip(page, rows, strict=True)]
    more = bool(page) and page[-1] != order[-1]
    return Page(tasks=tasks, total=len(order), nextCursor=page[-1] if more else "")


def _fits(located: Located, status: str) -> bool:
    if status == "running":
        return located.state not in ENDED
    if status == "completed":
        return located.state in (State.COMPLETED, State.SKIPPED)
    return status == "all" or located.state in (State.FAILED, State.REJECTED)


def cancel(session: Session, arguments: CancelTask) -> Requested:
    """Request the end of a task. Errors: NotFound, SpoolError for a rejected drop, WaitTimeout for a tree."""
    located = session.reach.find(arguments.taskId)
    reason = arguments.reason or "cancelled by an agent"
    if arguments.tree:
        return _cancel_tree(session, located, reason)
    preconditions.insist([located], preconditions.refuses_cancel)
    if located.state in ENDED:
        said = f"{located.id} has ended already: {status_of(session, located)}."
        return Requested(taskId=located.id, requested=[], message=said)
    session.spool.cancel(located.id, reason=reason)
    said = f"{located.id} is being cancelled; wait_tasks waits for its end."
    return Requested(taskId=located.id, requested=[located.id], message=said)


def _cancel_tree(session: Session, located: Located, reason: str) -> Requested:
    spool = session.spool
    asked: list[str] = []

    def ask(task_id: str) -> None:
        spool.post(Verb.CANCEL, task_id, reason)
        asked.append(task_id)

    try:
        with spool.reaching():
            cancel_tree(spool.store, [located], ask, patience_s=TREE_WITHIN_S)
        said = f"{located.id} and all below it have ended."
    except WaitTimeout as error:
        said = str(error)
    return Requested(taskId=located.id, requested=asked, message=said)


def tell(session: Session, arguments: TellTask) -> Told:
    """Tell the agent of a task something. Errors: NotFound, BadFile, SpoolError for a task that cannot be told."""
    located = session.reach.find(arguments.taskId)
    name = session.spool.tell(located.id, arguments.text)
    with session.spool.reaching():
        said = f"the agent of {located.id} is given it {when(session.spool.store, located.id)}."
    return Told(taskId=located.id, messageId=name, message=said)


def explain(session: Session, arguments: OneTask) -> Explained:
    """Return why a task is in its state, and what would change that. Errors: NotFound."""
    located = session.reach.find(arguments.taskId)
    found = session.spool.explain(located.id)
    reasons = [Why(gate=one.gate, reason=one.reason, change=one.change) for one in found.reasons]
    return Explained(
        taskId=found.id,
        state=found.state,
        attempt=found.attempt,
        verdict=found.verdict,
        reasons=reasons,
        lastLine=found.last_line,
    )


GET_TASK_RESULT = Tool(
    "get_task_result",
    "Get the result of a task",
    "The output, error and exit code of a task that has ended. One that has not says finished: false, which is no "
    "error; it never waits.",
    OneTask,
    TaskResult,
    result,
    reads=True,
)
LIST_TASKS = Tool(
    "list_tasks",
    "List your tasks",
    "The tasks that you submitted, and those that they submitted, with status, state and the reason why they wait.",
    ListTasks,
    Page,
    listed,
    reads=True,
)
CANCEL_TASK = Tool(
    "cancel_task",
    "Cancel a task",
    "End a task, running or not; its slot is free as soon as its processes have ended. A task that has ended stays "
    "as it is.",
    CancelTask,
    Requested,
    cancel,
    destroys=True,
    repeats=True,
)
TELL_TASK = Tool(
    "tell_task",
    "Tell an agent something",
    "A message for the agent of a task that has not ended, such as a correction. The agent is given it when its "
    "present turn is over, before its work is judged, or with its prompt where it has not begun.",
    TellTask,
    Told,
    tell,
)
EXPLAIN_TASK = Tool(
    "explain_task",
    "Explain why a task waits",
    "Why a task is in its state, and what would change that: the gate, lane or worker that it waits for.",
    OneTask,
    Explained,
    explain,
    reads=True,
)
