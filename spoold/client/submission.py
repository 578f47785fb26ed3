"""Turns a caller's tasks into drops: ids, validation, batches.

Law: a task that the leader would reject is refused here, at once and with the same words. A drop holds exactly the
caller's fields, and inside a task those of a child, so that submitting the task again gives the same content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from spoold.client.arguments import mappings
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import base36, batch_drop, encode_order, slug, task_drop
from spoold.protocol.plain_settings import Basics
from spoold.system import chance

if TYPE_CHECKING:
    from spoold.protocol.settings import Settings

TASK = "the task"
TASKS = "the tasks"
STEM_MAX = 60
# A check needs only the form of an order; the leader gives the real one.
_ANY_ORDER = encode_order(0, 1)


@dataclass(frozen=True, slots=True)
class Drop:
    """One file for pending/: its name, its bytes, the ids in it, and the ids that the caller chose."""

    name: str
    data: bytes
    ids: tuple[str, ...]
    chosen: tuple[str, ...] = ()


def plain(
    task: Mapping[str, Any], basics: Basics, micros: int, stamp: str, *, file: str = TASK, stem: str = ""
) -> Drop | None:
    """Do the same as `one` for a task that is surely valid; None where only the model can decide. Errors: BadFile."""
    from spoold.protocol.plain_task import is_task  # every verb imports this module, and few submit

    draft = complete(task, f"{_stem(task, stem)}-{suffix()}", stamp)
    data = _dump(draft, file)
    allowed = len(data) <= basics.max_bytes and draft.get("depth", 0) <= basics.max_depth
    if not allowed or not is_task(codec.load(data, file), stamp):
        return None
    return _drop(task, draft["id"], data, micros)


def one(
    task: Mapping[str, Any], settings: Settings, micros: int, stamp: str, *, file: str = TASK, stem: str = ""
) -> Drop:
    """Return a task as a drop. Errors: BadFile, with the same words as the leader's rejection.

    micros: microseconds since 1970; stamp: now, as people read it; file: the name of the task in errors; stem: the
    beginning of a generated id, instead of the task's name.
    """
    from spoold.rules.entry import admission, references

    draft = complete(task, f"{_stem(task, stem)}-{suffix()}", stamp)
    data = _dump(draft, file)
    checked = codec.load_task(data, file)
    task_id = checked.id or ""
    references.check_names(checked, settings, file)
    admission.admit(checked, _ANY_ORDER, task_id, settings, file)
    drop = _drop(task, task_id, data, micros)
    refused = admission.judge_kind(drop.name, "file", len(data), settings)
    if refused is not None:
        raise BadFile(file, refused.error.field, refused.error.problem, refused.error.mend)
    return drop


def many(
    tasks: Iterable[Mapping[str, Any]], settings: Settings, micros: int, stamp: str, *, file: str = TASKS
) -> list[Drop]:
    """Return tasks as batches, each as large as one drop may be; no tasks give no drop.

    Errors: BadFile that names the line, TypeError for a task that is no mapping.
    All tasks of a drop are admitted, or none. Too many for one drop become several independent drops; dependencies
    between them still hold.
    """
    drops: list[Drop] = []
    lines: list[bytes] = []
    ids: list[str] = []
    chosen: list[str] = []
    size = 0
    shared = suffix()
    for number, task in enumerate(mappings(tasks), 1):
        draft = complete(task, f"{_stem(task)}-{shared}-{number}", stamp)
        line = _dump(draft, f"{file} line {number}")
        if lines and size + len(line) + 1 > settings.drop.max_batch_bytes:
            drops.append(_batch(lines, ids, chosen, settings, micros + len(drops), f"{shared}-{len(drops)}", file))
            lines, ids, chosen, size = [], [], [], 0
        lines.append(line)
        ids.append(str(draft["id"]))
        chosen += [] if task.get("id") is None else ids[-1:]
        size += len(line) + 1
    if lines:
        drops.append(_batch(lines, ids, chosen, settings, micros + len(drops), f"{shared}-{len(drops)}", file))
    return drops


def complete(task: Mapping[str, Any], made_id: str, stamp: str) -> dict[str, Any]:
    """Return the task with an id. A task that has one stays unchanged, so that submitting it again is a no-op."""
    if task.get("id") is not None:
        return dict(task)
    return {**task, "id": made_id, "created_at": task.get("created_at") or stamp}


def suffix() -> str:
    """Return eight random base 36 digits, which make an id unique."""
    return base36(chance.below(36**8), 8)


def _drop(task: Mapping[str, Any], task_id: str, data: bytes, micros: int) -> Drop:
    made = task.get("id") is None
    # An id made here ends in random digits, and is dropped once: no other drop can have it.
    return Drop(task_drop(micros, task_id, unique=made), data, (task_id,), () if made else (task_id,))


def _batch(
    lines: list[bytes], ids: list[str], chosen: list[str], settings: Settings, micros: int, name: str, file: str
) -> Drop:
    data = b"\n".join([*lines, b""])
    from spoold.rules.entry import admission

    verdict = admission.check(data, file, settings)
    if not isinstance(verdict, admission.Accepted):
        raise verdict.error
    drop = batch_drop(micros, name)
    refused = admission.judge_kind(drop, "file", len(data), settings)
    if refused is not None:
        raise BadFile(file, refused.error.field, refused.error.problem, refused.error.mend)
    return Drop(drop, data, tuple(ids), tuple(chosen))


def _stem(task: Mapping[str, Any], said: str = "") -> str:
    """Return the readable part of a generated id: `said`, or else the task's name, type, function or program."""
    command, python = task.get("command"), task.get("python")
    program = command[0] if isinstance(command, (list, tuple)) and command else command
    if isinstance(program, str) and program.split():
        program = PurePosixPath(program.split()[0]).name
    callable_name = python.rpartition(":")[2] if isinstance(python, str) else None
    words = (said, task.get("name"), task.get("type"), task.get("agent"), callable_name, program)
    return slug(next((word for word in words if isinstance(word, str) and word), "task"), STEM_MAX)


def _dump(draft: Mapping[str, Any], file: str) -> bytes:
    try:
        data = orjson.dumps(draft)
    except TypeError as why:
        raise BadFile(file, "", f"cannot be written as JSON: {why}.", "use plain JSON values.") from why
    if b"null" in data:
        # null stands for None, or for NaN and infinity: this writer keeps the latter, and the reader refuses them.
        codec.load_text(json.dumps(draft, default=str), file)
    return data
