"""submit_tasks: many tasks with an order between them, a DAG, at once.

Law: all of them are checked before the first is submitted. A name in `after` is first one of this call, else the id
of a task within the caller's reach.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from pydantic import Field

from spoold.client.spool.submission import suffix
from spoold.faces.mcp import drafts
from spoold.faces.mcp.arguments import (
    LISTED,
    Arguments,
    Command,
    Cwd,
    Key,
    Label,
    Patterns,
    Retries,
    SomeIds,
    Timeout,
    Variables,
)
from spoold.faces.mcp.delegated import Agent, Prompt
from spoold.faces.mcp.keys import id_of
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.submitting import submit_all
from spoold.faces.mcp.tool import Answer, Tool
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile
from spoold.protocol.fields import Strict, TaskId

TASKS_MOST = 1000
# The output of another task in a prompt, up to the field of it.
_OUTPUT = re.compile(r"\{deps\.([A-Za-z0-9][A-Za-z0-9_=+,.-]*?)\.output(?=[.}\[])")


class Locks(Strict):
    """What no other task may touch meanwhile, or only read."""

    write: Patterns = ()
    read: Patterns = ()


class GraphTask(Strict):
    """One task: for an agent (agent and prompt), or a command."""

    name: TaskId = Field(description="Its name in this call, for `after`.")
    agent: Agent | None = None
    prompt: Prompt | None = Field(
        default=None, description="What it is to do; {deps.NAME.output} becomes the output of a task in `after`."
    )
    command: Command | None = None
    input: dict[str, Any] = Field(default={}, description="More fields of an agent's input, beside the prompt.")
    after: SomeIds = Field(default=(), description="Names in this call, or ids of your tasks: it starts after them.")
    label: Label | None = None
    cwd: Cwd | None = None
    env: Variables = {}
    timeout: Timeout | None = None
    retries: Retries | None = None
    locks: Locks = Field(default=Locks(), description="The files that it writes or reads, so that no two collide.")


class SubmitTasks(Arguments):
    """The arguments of submit_tasks."""

    tasks: Annotated[tuple[GraphTask, ...], Field(min_length=1, max_length=TASKS_MOST), LISTED]
    batch: TaskId | None = Field(default=None, description="A name for all of them together.")
    idempotencyKey: Key | None = None


class Named(Answer):
    """A task of the call, and its id."""

    name: str
    taskId: str
    created: bool


class Graph(Answer):
    """The tasks of the call, in its order."""

    tasks: list[Named]
    message: str


def submit_graph(session: Session, arguments: SubmitTasks) -> Graph:
    """Submit all tasks of the call, or none. Errors: BadFile that names the task and the field; SpoolError."""
    names = _checked(arguments.tasks)
    for number, task in enumerate(arguments.tasks):
        _check_prompt(number, task, names)
        session.reach.insist("submit_tasks", f"tasks.{number}.after", [one for one in task.after if one not in names])
    key = arguments.idempotencyKey or suffix()
    ids = {name: id_of(session.scope, key, name) for name in names}
    made = [_draft(task, ids, arguments.batch) for task in arguments.tasks]
    done = submit_all(session, made)
    tasks = [
        Named(name=task.name, taskId=task_id, created=created)
        for task, (task_id, created) in zip(arguments.tasks, done, strict=True)
    ]
    new = sum(one.created for one in tasks)
    said = f"{amount(new, 'task')} submitted" + (f", {len(tasks) - new} of them before." if new < len(tasks) else ".")
    return Graph(tasks=tasks, message=f"{said} wait_tasks waits for them.")


def _checked(tasks: tuple[GraphTask, ...]) -> set[str]:
    """Return the names. Errors: BadFile for a name twice, a circle, or a task that says nothing or two things."""
    graph: dict[str, tuple[str, ...]] = {}
    for number, task in enumerate(tasks):
        if task.name in graph:
            raise BadFile("submit_tasks", f"tasks.{number}.name", f"{task.name!r} is there twice.", "rename one.")
        graph[task.name] = task.after
        if (task.command is None) == (task.agent is None):
            said = "has neither an agent nor a command." if task.command is None else "has an agent and a command."
            raise BadFile("submit_tasks", f"tasks.{number}", f"{task.name} {said}", "give it one of them.")
        if (task.agent is None) != (task.prompt is None):
            raise BadFile("submit_tasks", f"tasks.{number}.prompt", "belongs to an agent.", "give both, or neither.")
    try:
        TopologicalSorter(
            {name: [need for need in after if need in graph] for name, after in graph.items()}
        ).prepare()
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise BadFile(
            "submit_tasks", "tasks", f"they wait for each other: {circle}.", "remove one `after`."
        ) from None
    return set(graph)


def _check_prompt(number: int, task: GraphTask, names: set[str]) -> None:
    """Errors: BadFile for a prompt with the output of a task of this call that need not have ended."""
    for name in _OUTPUT.findall(task.prompt or ""):
        if name in names and name not in task.after:
            raise BadFile(
                "submit_tasks",
                f"tasks.{number}.prompt",
                f"wants {{deps.{name}.output}}, and {task.name} does not come after {name}.",
                f"add {name} to its `after`.",
            )


def _with_ids(prompt: str, ids: dict[str, str]) -> str:
    """Return a prompt in which the outputs of tasks of this call have their ids in place of their names."""
    return _OUTPUT.sub(lambda found: f"{{deps.{ids.get(found[1], found[1])}.output", prompt)


def _draft(task: GraphTask, ids: dict[str, str], batch: str | None) -> dict[str, Any]:
    if task.command is not None:
        work = drafts.command_task(task.command)
    else:
        work = drafts.agent_task(task.agent or "", _with_ids(task.prompt or "", ids), task.input)
    locks = {name: list(found) for name in ("write", "read") if (found := getattr(task.locks, name))}
    more = drafts.given(
        label=task.label or task.name,
        cwd=task.cwd,
        env=task.env,
        timeout=task.timeout,
        retries=task.retries,
        after=[ids.get(need, need) for need in task.after],
        batch=batch,
    )
    return {"id": ids[task.name], **work, **more, **({"locks": locks} if locks else {})}


SUBMIT_TASKS = Tool(
    "submit_tasks",
    "Submit tasks with an order: a DAG",
    "Submit several tasks at once, each for an agent or a command. `after` names the tasks that have to complete "
    "first. All are submitted or none. Returns their ids at once.",
    SubmitTasks,
    Graph,
    submit_graph,
)
