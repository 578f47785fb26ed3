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
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName
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
# What a settings file may have; honest ones have less than a hundredth of either.
TOML_BYTES, TOML_DOTS = 256 << 10, 100
_SORTED = orjson.OPT_SORT_KEYS
_LONG = re.compile(rb"[0-9]{19}")
_KEYS = re.compile(rb'"[ \t\r\n]*:')
# What of a TOML file is a string or a comment, so that dots in it are no part of a key; and what ends a key.
_QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|"(?:[^"\\\n]|\\[^\n])*+"'
    r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)
_KEY_ENDS = re.compile(r"[=,{}\[\]]")
_DIGITS, _OPEN = re.compile(rb"[0-9_]{4300}"), re.compile(rb"(?:\[\s*|\{[^\[\]{}\n]*)+")


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
    _no_utf16(data, file)
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


def _no_utf16(data: bytes, file: str) -> None:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadFile(file, "", "is UTF-16, not UTF-8.", "save it as UTF-8.")


def is_exact(number: int) -> bool:
    """Whether JSON keeps an integer: of more than 64 bits most readers make a fraction (RFC 8259, section 6)."""
    return -(1 << 63) <= number < 1 << 64


def _exact(file: str, digits: str) -> None:
    if len(digits) > 20 or not is_exact(int(digits)):
        raise BadFile(file, "", f"has the number {digits[:40]}, of more than 64 bits.", "put it in as a string.")


def sure(data: bytes, value: Any, file: str) -> None:
    """Refuse what readers of JSON understand in several ways: a key that an object has twice (RFC 8259, section 4).

    data: the text from which the value was read. Errors: BadFile that names the key. Only for what people send: a
    token that was admitted before this was checked is read as ever.
    """
    # A quote within a string is escaped, so every key leaves a quote and a colon; more of these than there are keys
    # are the sign to look closely, which is slow.
    if len(_KEYS.findall(data)) > _count_keys(value):
        json.loads(data.removeprefix(BOM), object_pairs_hook=partial(_once, file))


def _count_keys(value: Any) -> int:
    count, level = 0, _containers([value])
    while level:
        count += sum(len(outer) for outer in level if isinstance(outer, dict))
        level = [inner for outer in level for inner in _containers(outer)]
    return count


def _once(file: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadFile(file, "", f"has the key {twice!r} twice in one object.", "keep one of the two.")
    return found


def _too_deep_file(file: str, fix: str = "put what is so deep in as a string.") -> BadFile:
    return BadFile(file, "", f"is nested deeper than {DEPTH_MAX} levels.", fix)


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


def load_sent_task(data: bytes, file: str) -> Task:
    """A task as somebody sends it, with nothing that could be read in two ways. Errors: BadFile."""
    value = load(data, file)
    sure(data, value, file)
    return check(Task, as_object(value, file), file)


def load_beat(data: bytes, name: BeatName) -> Heartbeat:
    """A heartbeat, as far as it can be read: node and beat are those of its name, a field that is wrong counts as
    missing, and its notes say what was passed over. Errors: none.
    """
    file = name.encode()
    try:
        said, faults = load_object(data, file), []
    except BadFile as error:
        said, faults = {}, [error.problem]
    said |= {"node": name.node, "beat": name.content}
    while True:
        try:
            beat = check(Heartbeat, said, file)
        except BadFile as error:
            del said[error.field.partition(".")[0]]
            faults.append(f"{error.field}: {error.problem}")
            continue
        notes = [f"its heartbeat cannot be read as a whole: {fault}" for fault in faults]
        return beat.model_copy(update={"notes": (*beat.notes, *notes)}) if notes else beat


def load_task(data: bytes, file: str) -> Task:
    """A task file. Errors: BadFile, with the nearest known name for an unknown field."""
    return check(Task, load_object(data, file), file)


def load_settings(data: bytes, file: str) -> Settings:
    """spool.toml. Errors: BadFile that names the key."""
    return load_toml(Settings, data, file)


def load_toml(model: type[M], data: bytes, file: str) -> M:
    """A settings file as its model. Errors: BadFile that names the key, or the line that is not TOML."""
    return check(model, toml_table(data, file), file)


def toml_table(data: bytes, file: str) -> dict[str, Any]:
    """What a TOML file says. Errors: BadFile that names the line that cannot be read, and the fix."""
    _no_utf16(data, file)
    if len(data) > TOML_BYTES:
        line = data.count(b"\n", 0, TOML_BYTES) + 1
        problem = f"is larger than {TOML_BYTES >> 10} KiB (which end in line {line})."
        raise BadFile(file, "", problem, f"cut it from line {line} on; no settings need so much.")
    try:
        text = data.removeprefix(BOM).decode()
        _few_dots(text, file)
        table = tomllib.loads(text)
    except UnicodeDecodeError as why:
        line = data.count(b"\n", 0, why.start) + 1
        raise BadFile(file, "", f"is not UTF-8 (line {line}, byte {why.start}).", "save it as UTF-8.") from why
    except RecursionError as why:
        line = data.count(b"\n", 0, _deepest(data)) + 1
        raise BadFile(
            file, "", f"is nested too deep (line {line}).", "close the brackets; no setting needs so many."
        ) from why
    except tomllib.TOMLDecodeError as why:
        raise BadFile(file, "", f"is not TOML: {why}.", "see https://toml.io for the syntax.") from why
    except ValueError as why:  # a limit of Python's own
        found = _DIGITS.search(data)
        line = data.count(b"\n", 0, found.start() if found else 0) + 1
        raise BadFile(file, "", f"has a number of too many digits (line {line}).", "write a smaller number.") from why
    _check_values(table, file)
    return table


def _few_dots(text: str, file: str) -> None:
    """Refuse keys and headers of very many parts: the parser needs time by the square of their number."""
    bare = _QUOTED.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(bare.split("\n"), 1):
        if line.count(".") > TOML_DOTS and any(part.count(".") > TOML_DOTS for part in _KEY_ENDS.split(line)):
            problem = f"has a key or header with more than {TOML_DOTS} dots (line {number})."
            raise BadFile(file, "", problem, f"remove line {number}; no setting needs so many.")


def _check_values(table: dict[str, Any], file: str) -> None:
    """TOML has tables of any depth without a bracket, and long numbers in base 16, which Python would not print."""
    level: list[tuple[str, Any]] = [("", table)]
    for _ in range(DEPTH_MAX):
        level = [
            (f"{field}.{name}".lstrip("."), inner)
            for field, outer in level
            if isinstance(outer, dict | list)
            for name, inner in (outer.items() if isinstance(outer, dict) else enumerate(outer))
        ]
        for field, value in level:
            if isinstance(value, int) and not is_exact(value):
                raise BadFile(file, field, "has a number of more than 64 bits.", "write a smaller number.")
    if level:
        raise _too_deep_file(file, "no setting needs so many; remove them.")


def _deepest(data: bytes) -> int:
    """Where the longest run of opening brackets begins."""
    return max(((len(run[0]), run.start()) for run in _OPEN.finditer(data)), default=(0, 0))[1]


def check(model: type[M], value: dict[str, Any], file: str) -> M:
    """A plain object as a model. Errors: BadFile for the first field that does not fit, counting the others."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise bad_file(model, value, error, file) from error
