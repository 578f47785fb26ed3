"""The protocol: lists tools and resources, calls them, and bounds each call; over HTTP or on stdin and stdout.

Law: a call answers within CALL_MOST_S, whatever the spool does. An error of a call is an answer with words, so that a
model can correct itself; only an unknown resource is an error of the protocol, which has no other place for it. A
tool for operators does not exist for an agent: it is not listed, and a call of it says who may call it. On stdin and
stdout, stdout has messages of the protocol and nothing else, and the server ends when its client closes stdin.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
import orjson
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as ToolOnTheWire

from spoold.client.read.attempt_logs import last_bytes
from spoold.faces.mcp.background_commands import CHECK_BACKGROUND, KILL_BACKGROUND, LIST_BACKGROUND, RUN_BACKGROUND
from spoold.faces.mcp.coordination import GET_CONTEXT, PUT_CONTEXT, RELEASE_FILES, REPORT_PROGRESS, RESERVE_FILES
from spoold.faces.mcp.delegation import DELEGATE_TASK, SUBMIT_TASKS
from spoold.faces.mcp.people import APPROVE, ASK_HUMAN
from spoold.faces.mcp.pool import DRAIN, GET_STATUS, KILL_ALL, SCALE_WORKERS, SPAWN_WORKERS
from spoold.faces.mcp.session import Role, Session
from spoold.faces.mcp.tasks import (
    CANCEL_TASK,
    EXPLAIN_TASK,
    GET_TASK_RESULT,
    LIST_TASKS,
    TELL_TASK,
    ListTasks,
    listed,
)
from spoold.faces.mcp.tool import Answer, Tool
from spoold.faces.mcp.waits import WAIT_TASKS
from spoold.protocol import codec
from spoold.protocol.codec import WRITTEN_DEPTH
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.names import is_id
from spoold.protocol.version import __version__

CALL_MOST_S = 49.5
LATE = f"the spool has not answered within {CALL_MOST_S:g} s. Fix: try again; get_status says whether a master leads."
AGENT = (
    "A spool runs tasks on a pool of machines. Submit with delegate_task, run_background or submit_tasks; each "
    "returns a taskId at once. wait_tasks waits, at most 45 s a call. explain_task says why a task does not start. "
    "You see the tasks that you submitted, and theirs. Give an idempotencyKey where you may have to repeat a call."
)
OPERATOR = (
    "You are an operator: you see all tasks, answer questions with approve, start workers with spawn_workers, and "
    "stop the pool with drain or kill_all."
)
Context = ServerRequestContext[Any, Any]
_log = logging.getLogger(__name__)


def serve(session: Session) -> Server[Any]:
    """Return a server of the protocol for a session; a transport runs it."""
    return Server(
        "spool",
        version=__version__,
        title="spoold",
        instructions=f"{AGENT} {OPERATOR}" if session.role is Role.OPERATOR else AGENT,
        on_list_tools=_Tools(session).list_tools,
        on_call_tool=_Tools(session).call,
        get_tool_input_schema=_Tools(session).schema,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_Resources(session).read,
    )


class _Tools:
    """The tools of a session, on the wire."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tools = [_on_the_wire(tool) for tool in tools_for(session.role)]

    async def list_tools(self, _: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    def schema(self, name: str) -> dict[str, Any] | None:
        return next((tool.input_schema for tool in self._tools if tool.name == name), None)

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            tool = tool_for(self._session.role, params.name)
            arguments = codec.check(tool.arguments, dict(params.arguments or {}), tool.name)
            with anyio.move_on_after(CALL_MOST_S) as scope:
                answer = await self._answer(tool, arguments, context)
        except Exception as error:  # noqa: BLE001 - whatever it is, a model needs a sentence
            if not isinstance(error, (SpoolError, OSError)):
                _log.exception("a call of %r failed", params.name)
            return _refused(told(error))
        return _refused(LATE) if scope.cancelled_caught else _answered(answer)

    async def _answer(self, tool: Tool, arguments: Any, context: Context) -> Answer:
        async def notify(done: float, of: float, message: str) -> None:
            await context.session.report_progress(done, of, message)

        if tool.in_thread:
            run = anyio.to_thread.run_sync
            found: Answer = await run(tool.run, self._session, arguments, notify, abandon_on_cancel=True)
        else:
            found = await tool.run(self._session, arguments, notify)
        return found


class _Resources:
    """The resources of a session, on the wire."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read(self, _: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            run = anyio.to_thread.run_sync
            text, kind = await run(read, self._session, uri, abandon_on_cancel=True)
        except (SpoolError, OSError) as error:
            code = INVALID_PARAMS if isinstance(error, NotFound) else INTERNAL_ERROR
            raise MCPError(code=code, message=told(error), data={"uri": uri[:200]}) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=text, mime_type=kind)])


async def _list_resources(_: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
    said = "Your tasks that have not ended."
    queue = Resource(uri=QUEUE, name="queue", description=said, mime_type="application/json")
    return ListResourcesResult(resources=[queue])


async def _list_templates(_: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    found = [
        ResourceTemplate(uri_template=uri, name=name, description=said, mime_type=kind)
        for uri, (name, said, kind) in TEMPLATES.items()
    ]
    return ListResourceTemplatesResult(resource_templates=found)


def _on_the_wire(tool: Tool) -> ToolOnTheWire:
    hints = ToolAnnotations(
        read_only_hint=tool.reads,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.reads or tool.repeats,
        open_world_hint=False,
    )
    return ToolOnTheWire(
        name=tool.name,
        title=tool.title,
        description=tool.text,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.answer.model_json_schema(mode="serialization"),
        annotations=hints,
    )


def _answered(answer: Answer) -> CallToolResult:
    content = answer.model_dump(mode="json")
    # Clients without structured content read the text.
    text = json.dumps(content, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def _refused(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)


# A task, its log and the queue, by URI.


QUEUE = "spool://queue"
TASK = "spool://task/"
LOG = "/log"
TEMPLATES = {
    "spool://task/{id}": (
        "task",
        "Everything that is known of a task: content, attempts, results.",
        "application/json",
    ),
    "spool://task/{id}/log": ("log", "What the last attempt of a task wrote, at most the last 1 MiB.", "text/plain"),
}
LOG_MOST = 1 << 20
QUEUE_MOST = 200


def read(session: Session, uri: str) -> tuple[str, str]:
    """Return the text of a resource, and its type. Errors: NotFound."""
    if uri == QUEUE:
        page = listed(session, ListTasks(status="running", limit=QUEUE_MOST))
        return page.model_dump_json(), "application/json"
    rest = uri.removeprefix(TASK)
    task_id = unquote(rest.removesuffix(LOG))
    if not uri.startswith(TASK) or not is_id(task_id):
        known = ", ".join([*TEMPLATES, QUEUE])
        raise NotFound(f"there is no resource {uri[:200]!r}. Fix: use one of {known}, with the whole id of a task.")
    located = session.reach.find(task_id)
    if not rest.endswith(LOG):
        return json.dumps(_plain(asdict(session.spool.show(located.id))), ensure_ascii=False), "application/json"
    with session.spool.reaching():
        piece = last_bytes(session.spool.store, located.id, LOG_MOST)
    return "" if piece is None else piece.data.decode(errors="replace"), "text/plain"


def _plain(value: Any) -> Any:
    """What was found, as JSON has it: results are models."""
    data = orjson.dumps(value, default=lambda model: model.model_dump(mode="json"))
    return codec.load(data, "the task", depth=WRITTEN_DEPTH)


# Errors in words: what is wrong, where, and how to fix it, for a model that has to correct its call.


MOST = 2000
BUG = "this is a bug in spoold; please report it. The server's stderr has the details."


def told(error: Exception) -> str:
    """Return the error as a sentence."""
    if isinstance(error, BadFile) and error.file in ("the task", "the tasks"):
        text = f"{error.told(error.file)} Fix: {error.mend}"
    elif isinstance(error, SpoolError):
        text = str(error)
    elif isinstance(error, OSError):
        text = (
            f"the spool cannot be reached: {error.strerror or error}. Fix: try again, or ask a person to look at it."
        )
    else:
        text = BUG
    return text if len(text) <= MOST else f"{text[:MOST]} …"


# All tools, in the order in which a client lists them.


TOOLS = (
    DELEGATE_TASK,
    GET_TASK_RESULT,
    LIST_TASKS,
    CANCEL_TASK,
    TELL_TASK,
    RUN_BACKGROUND,
    CHECK_BACKGROUND,
    LIST_BACKGROUND,
    KILL_BACKGROUND,
    SUBMIT_TASKS,
    WAIT_TASKS,
    EXPLAIN_TASK,
    GET_STATUS,
    RESERVE_FILES,
    RELEASE_FILES,
    ASK_HUMAN,
    REPORT_PROGRESS,
    GET_CONTEXT,
    PUT_CONTEXT,
    SPAWN_WORKERS,
    SCALE_WORKERS,
    DRAIN,
    KILL_ALL,
    APPROVE,
)
BY_NAME = {tool.name: tool for tool in TOOLS}


def tools_for(role: Role) -> list[Tool]:
    """Return the tools that a role has."""
    return [tool for tool in TOOLS if role is Role.OPERATOR or not tool.operators_only]


def tool_for(role: Role, name: str) -> Tool:
    """Return a tool by its name. Errors: SpoolError for one that is not there, or not for this role."""
    tool = BY_NAME.get(name)
    if tool is None:
        raise SpoolError(
            f"there is no tool {name[:100]!r}. Fix: use one of {', '.join(t.name for t in tools_for(role))}."
        )
    if tool.operators_only and role is not Role.OPERATOR:
        raise SpoolError(f"{name} is for operators, and this server has the role {role}. Fix: ask a person to do it.")
    return tool


# The server on stdin and stdout.


def run_on_stdio(session: Session) -> None:
    """Serve until the client closes stdin."""
    anyio.run(_run, session)


async def _run(session: Session) -> None:
    server = serve(session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
