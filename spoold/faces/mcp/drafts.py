"""What a tool's arguments are as fields of a task.

Law: a field that was not given is not in the task, so that the default of the spool or of the type holds, and a child
inherits from its parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spoold.faces.mcp.arguments import seconds
from spoold.protocol import agent_fields
from spoold.protocol.errors import BadFile, WrongValue


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
