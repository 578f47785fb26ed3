"""Turns a caller's tasks into drops: ids, validation, batches; and checks callables and their arguments.

A worker imports a callable and reads its arguments as JSON.

Law: a task that the leader would reject is refused here, at once and with the same words. A drop holds exactly the
caller's fields, and inside a task those of a child, so that submitting the task again gives the same content. A
callable passes only if its module and its name lead back to that very object. Values are judged by their exact type,
since the worker would see only the base of a subclass.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any

import orjson

from spoold.protocol import codec
from spoold.protocol.codec import is_exact
from spoold.protocol.errors import BadFile
from spoold.protocol.names import base36, batch_drop, encode_order, slug, task_drop
from spoold.protocol.plain_settings import Basics
from spoold.system import kernel_random

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
    return base36(kernel_random.below(36**8), 8)


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


# Callables and their arguments, checked before they travel: a worker imports the one and reads the other as JSON.


DEPTH_MAX = 100
SHOWN_MAX = 60
HALF = "holds half a character (a lone surrogate), which JSON cannot say; pass whole characters."


def target_of(function: Callable[..., Any]) -> str:
    """Return a callable as "module:qualname". Errors: TypeError, with the fix, if no other process can import it."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name:
        raise TypeError(f"{function!r} has no name to import it by; pass a function that a module defines.")
    if "<lambda>" in name:
        raise TypeError(f"a lambda ({module}) cannot be imported by a worker; give it a name with def, in a module.")
    if "<locals>" in name:
        raise TypeError(f"{name} is defined inside a function; move it to the top level of its module ({module}).")
    if module == "__main__":
        raise TypeError(
            f"{name} is defined in the script that was started (__main__), which a worker cannot import; "
            "move it into a module that the workers have too."
        )
    if not isinstance(getattr(function, "__self__", None), ModuleType | None):
        raise TypeError(f"{name} is bound to an object, which does not travel; pass a plain function.")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        raise TypeError(
            f"{module}:{name} is not this function, so a worker would call another one; pass it undecorated."
        )
    return f"{module}:{name}"


def mapping_of(task: Any, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the task if it is a mapping, an empty one for None. Errors: TypeError that names the right call."""
    if task is None or isinstance(task, Mapping):
        return task or {}
    right = f"submit(command={short(task)})"
    if isinstance(task, str) and fields:
        right = f"submit(name={short(task)}, {', '.join(f'{field}=…' for field in fields)})"
    elif callable(task):
        right = "SpoolExecutor(spool).submit(function, …)"
    elif isinstance(task, Sequence) and any(isinstance(item, Mapping) for item in task):
        right = "submit_many(tasks)"
    given = f"{type(task).__name__} {short(task)}"
    raise TypeError(f"submit takes a task as a mapping or as fields, not the {given}; write {right}.")


def mappings(tasks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tasks, each a mapping. Errors: TypeError that names the first task that is not."""
    if isinstance(tasks, Mapping):
        raise TypeError("submit_many takes several tasks, not one mapping; write submit(task) for one.")
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, Mapping):
            given = f"{type(task).__name__} {short(task)}"
            raise TypeError(f"task {number} is the {given}; each task is a mapping, such as {{'command': 'make'}}.")
        yield task


def short(value: Any) -> str:
    """Return the value's repr, cut to SHOWN_MAX characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"


def check_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse values that JSON cannot hold. Errors: TypeError that names the argument. A tuple arrives as a list."""
    for number, value in enumerate(args, 1):
        _check(value, f"argument {number}", 0)
    for name, value in kwargs.items():
        if _holds_half(name):
            raise TypeError(f"argument {name!r} has a name that {HALF}")
        _check(value, f"argument {name!r}", 0)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise TypeError(f"{where} is nested deeper than {DEPTH_MAX} levels, or holds itself.")
    # Exact types: the worker would see only the base of a subclass (an enum, a named tuple).
    kind = type(value)
    if kind in (list, tuple):
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]", depth + 1)
    elif kind is dict:
        for name, item in value.items():
            if type(name) is not str:
                raise TypeError(f"{where} has the key {name!r}; JSON objects have strings as keys.")
            if _holds_half(name):
                raise TypeError(f"{where} has the key {name!r}, which {HALF}")
            _check(item, f"{where}[{name!r}]", depth + 1)
    else:
        _check_plain(value, where)


def _check_plain(value: Any, where: str) -> None:
    kind = type(value)
    if kind not in (type(None), bool, int, float, str):
        raise TypeError(
            f"{where} is a {kind.__qualname__}, which JSON cannot say; pass plain values, or a path to data."
        )
    if kind is str and _holds_half(value):
        raise TypeError(f"{where} {HALF}")
    if kind is int and not is_exact(value):
        raise TypeError(f"{where} is an integer beyond 64 bits; pass it as a string.")
    if kind is float and not math.isfinite(value):
        raise TypeError(f"{where} is {value}, which JSON cannot say; pass None or a string.")


def _holds_half(text: str) -> bool:
    """Return whether a lone surrogate is in the text, as in the name of a file that is no UTF-8."""
    return not text.isascii() and text.encode(errors="replace").decode() != text
