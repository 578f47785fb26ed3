"""delegate_task and submit_tasks: one task for an agent, or many with an order; and how they are submitted.

Law: what an agent is, the workers say: a task names a type, and a worker that has a handler for it runs it. A field
that was not given is not in the task, so that the default of the spool or of the type holds, and a child inherits
from its parent. Of many tasks, all are checked before the first is submitted. A name in `after` is first one of this
call, else the id of a task within the caller's reach. The same key in the same scope always gives the same id, also
after a restart of the server and in the next attempt of the caller's task: so a call that is repeated finds its task,
and makes no second one. A key that was used for another task is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from spoold.client.read.selecting import Located, find
from spoold.client.read.task_info import read_content
from spoold.client.spool.submission import suffix
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.task_answers import TaskResult, finished
from spoold.faces.mcp.tool import (
    LISTED,
    Answer,
    Arguments,
    Command,
    Cwd,
    Key,
    Label,
    Notify,
    Patterns,
    Retries,
    SomeIds,
    Timeout,
    Tool,
    Variables,
    Wait,
    bounded_s,
    seconds,
)
from spoold.faces.mcp.waits import NO_SLOT, look_at, wait_for
from spoold.protocol import agent_fields
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, SpoolError, WrongValue
from spoold.protocol.fields import Strict, TaskId
from spoold.protocol.lifecycle import State
from spoold.protocol.names import base36, slug
from spoold.protocol.names import key as folded

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
    draft = agent_task(arguments.agent, arguments.prompt, arguments.input) | given(
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


# submit_tasks: many tasks with an order between them, a DAG, at once.


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
        work = command_task(task.command)
    else:
        work = agent_task(task.agent or "", _with_ids(task.prompt or "", ids), task.input)
    locks = {name: list(found) for name in ("write", "read") if (found := getattr(task.locks, name))}
    more = given(
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


# What a tool's arguments are as fields of a task.


def agent_task(agent: str, prompt: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what makes a task one for an agent: workers have a handler for the type, which finds the prompt.

    Errors: BadFile where `more` holds a field of such tasks that is wrong, or the prompt.
    """
    try:
        return dict(agent_fields.expanded({"agent": agent, "prompt": prompt, "input": more or {}}))
    except WrongValue as wrong:
        raise BadFile("input", "", f"{wrong.problem}.", f"{wrong.mend}.") from None


def command_task(command: str | Sequence[str]) -> dict[str, Any]:
    """Return what makes a task one for a command."""
    return {"command": command if isinstance(command, str) else list(command)}


def given(
    *,
    label: str | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: int | None = None,
    retries: int | None = None,
    after: Sequence[str] = (),
    batch: str | None = None,
) -> dict[str, Any]:
    """Return the other fields that were given. timeout: in milliseconds."""
    fields = {
        "name": label,
        "cwd": cwd,
        "env": dict(env) if env else None,
        "timeout": None if timeout is None else seconds(timeout),
        "max_retries": retries,
        "dependencies": list(after) or None,
        "batch": batch,
    }
    return {name: value for name, value in fields.items() if value is not None}


# Tasks on their way into the spool.


# What the client adds to a task is not the caller's, and may differ the next time.
ADDED = frozenset({"id", "parent", "depth", "created_at", "batch", "budgets", "class", "priority"})


def submit(session: Session, draft: Mapping[str, Any], key: str | None) -> tuple[str, bool]:
    """Submit a task; return its id, and whether it is new. Errors: BadFile, SpoolError for a key of another task."""
    if key is None:
        task_id = session.spool.submit_from("the task", draft)
        session.reach.add([task_id])
        return task_id, True
    task_id = id_of(session.scope, key)
    [(_, created)] = submit_all(session, [{**draft, "id": task_id}])
    return task_id, created


def submit_all(session: Session, drafts: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """Submit tasks with ids from keys, all or none; return each id, and whether it is new. Errors: as of `submit`."""
    before = _there(session, [str(draft["id"]) for draft in drafts])
    for draft in drafts:
        if (located := before.get(folded(str(draft["id"])))) is not None:
            _insist_same(session, draft, located)
    new = [draft for draft in drafts if folded(str(draft["id"])) not in before]
    if len(new) == 1:
        session.spool.submit_from("the task", new[0])
    elif new:
        session.spool.submit_many(new)
    made = {folded(str(draft["id"])) for draft in new}
    ids = [str(draft["id"]) for draft in drafts]
    session.reach.add(ids)
    return [(task_id, folded(task_id) in made) for task_id in ids]


def _there(session: Session, ids: list[str]) -> dict[str, Located]:
    """The tasks that have these ids already; a rejected drop may be submitted again."""
    with session.spool.reaching():
        found, _ = find(session.spool.store, ids)
    return {folded(one.id): one for one in found if one.state is not State.REJECTED}


def _insist_same(session: Session, draft: Mapping[str, Any], located: Located) -> None:
    content = read_content(session.spool.store, located)
    names = (draft.keys() | content.keys()) - ADDED
    if content and any(_plain(draft.get(name)) != _plain(content.get(name)) for name in names):
        differs = sorted(name for name in names if _plain(draft.get(name)) != _plain(content.get(name)))
        raise SpoolError(
            f"idempotencyKey: it was used for another task, {located.id}, which differs in {', '.join(differs)}. "
            "Fix: use another key, or the same arguments."
        )


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# Ids that follow from idempotency keys.


STEM_MAX = 40
DIGITS = 16


def id_of(scope: str, key: str, part: str = "") -> str:
    """Return the id of a task. part: which of the several tasks of one call; '' for its only one."""
    said = f"{scope}\0{key}\0{part}".encode(errors="backslashreplace")
    number = int.from_bytes(hashlib.sha256(said).digest()) % 36**DIGITS
    return f"{slug(part or key, STEM_MAX)}-{base36(number, DIGITS)}"
