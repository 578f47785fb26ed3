"""Callables and their arguments, checked before they travel: a worker imports the one and reads the other as JSON.

Law: a callable passes only if its module and its name lead back to that very object. Values are judged by their exact
type, since the worker would see only the base of a subclass.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from spoold.protocol.codec import is_exact

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
