"""Bytes to values and back. Every failure is a BadFile that names the file, the field and the mend."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from functools import partial
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from spoold.protocol.complaint import bad_file
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task

M = TypeVar("M", bound=BaseModel)
# orjson reads 1,024 levels and writes 254. What is read here is written again inside other values, so it must stay
# well below: a drop that can be read and not written would stop whoever has to copy it.
DEPTH_MAX = 200
# No checker is named: those at hand take NaN and half a surrogate pair, and none takes the lines of a .jsonl.
STRICT = (
    "mend it there; JSON has double quotes, no comments, no comma before a closing bracket, no NaN or Infinity, and "
    "no half of a surrogate pair."
)
BOM = b"\xef\xbb\xbf"
_SORTED = orjson.OPT_SORT_KEYS
_LONG = re.compile(rb"[0-9]{19}")


def dump(value: Any) -> bytes:
    """A model or plain value as one line of JSON.

    What tasks hand back may hold text that is no UTF-8, numbers that no other reader knows, and more levels than
    `load` takes: they become legible text, since a result that cannot be written would be a task that never ends.
    """
    with contextlib.suppress(TypeError, ValueError):  # orjson's and pydantic's words for it
        plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        data = orjson.dumps(plain)
        if not _too_deep(data, plain):
            return data
    return orjson.dumps(_plain(value, DEPTH_MAX))


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, dict | list | tuple) and not levels:
        return f"(nested deeper than {DEPTH_MAX} levels)"
    if isinstance(value, dict):
        return {legible(str(name)): _plain(inner, levels - 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, levels - 1) for inner in value]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if is_exact(value) else str(value)
    return legible(str(value))


def same_content(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same, however they were written."""
    return orjson.dumps(left, option=_SORTED) == orjson.dumps(right, option=_SORTED)


def load(data: bytes, file: str) -> Any:
    """Any JSON value. Errors: BadFile that says what is wrong and how to mend it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadFile(file, "", "is UTF-16, not UTF-8.", "save it as UTF-8.")
    if not data.strip():
        raise BadFile(file, "", "is empty.", "write one JSON object into it.")
    try:
        value = orjson.loads(data.removeprefix(BOM))
    except orjson.JSONDecodeError as error:
        try:
            data.decode()
        except UnicodeDecodeError as why:
            raise BadFile(file, "", f"is not UTF-8 (byte {why.start}).", "save it as UTF-8.") from error
        if error.msg.endswith("limit exceeded"):  # the parser's own limit on depth lies beyond ours
            raise _too_deep_file(file) from error
        # One line alone may be a line of a batch, whose own number its caller knows.
        line = f"line {error.lineno}, " if b"\n" in data else ""
        raise BadFile(file, "", f"is not JSON: {error.msg} ({line}column {error.colno}).", STRICT) from error
    if _too_deep(data, value):
        raise _too_deep_file(file)
    if _LONG.search(data):
        json.loads(data.removeprefix(BOM), parse_int=partial(_exact, file))
    return value


def is_exact(number: int) -> bool:
    """Whether JSON keeps an integer: of more than 64 bits most readers make a fraction (RFC 8259, section 6)."""
    return -(1 << 63) <= number < 1 << 64


def _exact(file: str, digits: str) -> None:
    if len(digits) > 20 or not is_exact(int(digits)):
        raise BadFile(file, "", f"has the number {digits[:40]}, of more than 64 bits.", "put it in as a string.")


def _too_deep_file(file: str) -> BadFile:
    return BadFile(file, "", f"is nested deeper than {DEPTH_MAX} levels.", "put what is so deep in as a string.")


def _too_deep(data: bytes, value: Any) -> bool:
    """Whether the value has more than DEPTH_MAX levels; costs next to nothing where there are few brackets."""
    if data.count(b"[") + data.count(b"{") <= DEPTH_MAX:
        return False
    level = _containers([value])
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(outer: Any) -> list[Any]:
    values = outer.values() if isinstance(outer, dict) else outer
    return [value for value in values if isinstance(value, (dict, list))]


def load_object(data: bytes, file: str) -> dict[str, Any]:
    """A JSON object. Errors: BadFile."""
    return as_object(load(data, file), file)


def as_object(value: Any, file: str) -> dict[str, Any]:
    """The value if it is an object. Errors: BadFile."""
    if not isinstance(value, dict):
        kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
        problem = f"is {kinds.get(type(value), 'a number')}, not an object."
        raise BadFile(file, "", problem, "one file holds one task {…}; many tasks go one a line into a .jsonl.")
    return value


def load_model(model: type[M], data: bytes, file: str) -> M:
    """A file of ours as its model. Errors: BadFile."""
    return check(model, load_object(data, file), file)


def load_task(data: bytes, file: str) -> Task:
    """A task file. Errors: BadFile, with the nearest known name for an unknown field."""
    return check(Task, load_object(data, file), file)


def load_settings(data: bytes, file: str) -> Settings:
    """spool.toml. Errors: BadFile that names the key."""
    return load_toml(Settings, data, file)


def load_toml(model: type[M], data: bytes, file: str) -> M:
    """A settings file as its model. Errors: BadFile that names the key, or the line that is not TOML."""
    try:
        return check(model, tomllib.loads(data.removeprefix(BOM).decode()), file)
    except UnicodeDecodeError as why:
        raise BadFile(file, "", f"is not UTF-8 (byte {why.start}).", "save it as UTF-8.") from why
    except (ValueError, RecursionError) as why:  # more than TOMLDecodeError: Python has limits of its own
        raise BadFile(file, "", f"is not TOML: {why}.", "see https://toml.io for the syntax.") from why


def check(model: type[M], value: dict[str, Any], file: str) -> M:
    """A plain object as a model. Errors: BadFile for the first field that does not fit, counting the others."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise bad_file(model, value, error, file) from error
