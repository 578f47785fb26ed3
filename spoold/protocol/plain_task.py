"""A task, as `spool submit` makes it.

Law: a yes means that the model, and so every leader, accepts the content. A field that is not named here makes the
answer "not sure".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.protocol.errors import BadName
from spoold.protocol.lanes import Lane
from spoold.protocol.plain_fields import (
    DEPTH_MAX,
    RETRIES,
    Shape,
    Unsure,
    anything,
    by_name,
    listed,
    priority,
    real,
    some_seconds,
    table,
    task_id,
    text,
    whole,
    word,
)

_CPUS_MAX, _DEPENDENCIES_MAX = 9999, 10_000


def _argument(value: Any) -> str:
    if "\0" in text(value):
        raise Unsure
    return str(value)


def _command(value: Any) -> tuple[str, ...]:
    words: tuple[str, ...] = (_argument(value),) if type(value) is str else listed(_argument)(value)
    if not words or not words[0].strip():
        raise Unsure
    return words


def _env(value: Any) -> dict[str, str]:
    variables: dict[str, str] = by_name(_argument)(value)
    if any(not name or "=" in name or "\0" in name for name in variables):
        raise Unsure
    return variables


def _directory(value: Any) -> str:
    path = _argument(value)
    if not path.startswith("/") or len(path) > 4096:
        raise Unsure
    return path


def _name(value: Any) -> str:
    if len(text(value)) > 500:
        raise Unsure
    return str(value)


def _ids(value: Any) -> tuple[str, ...]:
    ids: tuple[str, ...] = listed(task_id)(value)
    if len(ids) > _DEPENDENCIES_MAX:
        raise Unsure
    return ids


TASK: Shape = {
    "id": task_id,
    "type": word,
    "name": _name,
    "priority": priority,
    "created_at": text,
    "timeout": some_seconds,
    "input": anything,
    "command": _command,
    "stdin": text,
    "env": _env,
    "cwd": _directory,
    "dependencies": _ids,
    "max_retries": RETRIES,
    "requires": table(
        {
            "cpus": real(0, _CPUS_MAX),
            "cpu": real(0, _CPUS_MAX),
            "mem_mb": whole(0, 10**9),
            "mem": whole(0, 10**9),
            "gpus": whole(0, _CPUS_MAX),
            "gpu": whole(0, _CPUS_MAX),
            "labels": listed(word),
        }
    ),
    "batch": task_id,
    "parent": task_id,
    "depth": whole(0, DEPTH_MAX),
}
_READ_TASK = table(TASK)


def is_task(value: Any, stamp: str) -> bool:
    """Whether a JSON value surely is a task that any leader admits; False if the caller must ask the model.

    stamp: the time at which the task was made; any other time is "not sure".
    """
    try:
        task = _READ_TASK(value)
        lane = _lane(task)
    except (Unsure, BadName):
        return False
    at_odds = task.get("created_at", stamp) != stamp or task["id"] in task.get("dependencies", ())
    if task["id"] == task.get("parent") or ("depth" in task and "parent" not in task):
        return False
    return bool(lane) and not at_odds


def _lane(task: Mapping[str, Any]) -> str:
    """The name of its lane. Errors: BadName, Unsure."""
    run = "command" if "command" in task else "handler"
    if "id" not in task or (run == "handler" and "type" not in task):
        raise Unsure
    needs = task.get("requires", {})
    if any(short in needs and long in needs for short, long in (("cpu", "cpus"), ("mem", "mem_mb"), ("gpu", "gpus"))):
        raise Unsure
    return Lane(
        task.get("type", run),
        run,
        "",
        needs.get("cpus", needs.get("cpu", 0)),
        needs.get("mem_mb", needs.get("mem", 0)),
        needs.get("gpus", needs.get("gpu", 0)),
        needs.get("labels", ()),
    ).encode()
