"""All tools, in the order in which a client lists them.

Law: a tool for operators does not exist for an agent: it is not listed, and a call of it says who may call it.
"""

from __future__ import annotations

from spoold.faces.mcp.awaited import WAIT_TASKS
from spoold.faces.mcp.background import CHECK_BACKGROUND, KILL_BACKGROUND, LIST_BACKGROUND, RUN_BACKGROUND
from spoold.faces.mcp.context import GET_CONTEXT, PUT_CONTEXT
from spoold.faces.mcp.delegated import DELEGATE_TASK
from spoold.faces.mcp.files import RELEASE_FILES, RESERVE_FILES
from spoold.faces.mcp.graphs import SUBMIT_TASKS
from spoold.faces.mcp.people import APPROVE, ASK_HUMAN
from spoold.faces.mcp.pool import DRAIN, GET_STATUS, KILL_ALL
from spoold.faces.mcp.progress import REPORT_PROGRESS
from spoold.faces.mcp.roles import Role
from spoold.faces.mcp.tasks import CANCEL_TASK, EXPLAIN_TASK, GET_TASK_RESULT, LIST_TASKS, TELL_TASK
from spoold.faces.mcp.tool import Tool
from spoold.faces.mcp.workers import SCALE_WORKERS, SPAWN_WORKERS
from spoold.protocol.errors import SpoolError

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
