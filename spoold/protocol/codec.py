"""Bytes to values and back: the one reader of what anybody else wrote, as JSON (`toml_file` is that of TOML).

Law: every failure to read is a BadFile that names the file, the field and the fix. Size, depth, the number of lists
and objects and the length of numbers are judged before any model sees the value, so that what was read can be
compared, shown, copied and written by everybody. No other module calls a parser; a test of the house sees to that.
`dump` can write any value that JSON holds, if need be as legible text: a task whose result cannot be written would
never end.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from spoold.protocol.errors import BadFile, legible
from spoold.protocol.names import BeatName
from spoold.protocol.plain_settings import Identity

if TYPE_CHECKING:  # models take half the start time of a short command, so each is imported where it is used
    from pydantic import BaseModel

    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.settings import Settings
    from spoold.protocol.task import Task

M = TypeVar("M", bound="BaseModel")
# orjson reads 1,024 levels and writes 254. A value that is read here is written again inside other values, so the
# limit is well below 254: a drop that can be read but not written would stop the process that has to copy it.
DEPTH_MAX, WRITTEN_DEPTH = 200, 254
# The most bytes of a file: as `drop.max_bytes` at its most. Those who read what is smaller say so.
SIZE_MAX = 4 << 30
# Lists and objects of one file, at least four bytes of it each. Numbers and texts need a tenth of the time.
CONTAINERS_MAX = 1_000_000
# Of one object at the top of a file; no format has more than a few dozen.
FIELDS_MAX = 1000
# No checker is named: the common ones accept NaN and half a surrogate pair, and none accepts the lines of a .jsonl.
STRICT = (
    "fix it there; JSON has double quotes, no comments, no comma before a closing bracket, no NaN or Infinity, and "
    "no half of a surrogate pair."
)
ONE_OBJECT = "one file holds one JSON object {…}."
ONE_TASK = "one file holds one task {…}; many tasks go one a line into a .jsonl."
SEVERAL = "several tasks, one on a line: name it .jsonl."
BOM = b"\xef\xbb\xbf"
_SORTED = orjson.OPT_SORT_KEYS
# A long integer is found as a run of zeros, once every digit is one: much sooner than by a regular expression.
_DIGITS, _LONG = bytes.maketrans(b"123456789", b"000000000"), b"0" * 19
_KEYS = re.compile(rb'"[ \t\r\n]*:')
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BEHIND_A_KEY = tuple(b'"' + sign for sign in (b":", b" ", b"\t", b"\r", b"\n"))


def dump(value: Any) -> bytes:
    """A model or plain value as one line of JSON.

    A task's output may hold text that is not UTF-8, numbers that other readers do not know, and more levels than
    `load` accepts. They become legible text: if a result cannot be written, its task never ends.
    """
    with contextlib.suppress(TypeError, ValueError):  # orjson and pydantic raise these
        plain = value.model_dump(mode="json") if _is_model(value) else value
        data = orjson.dumps(plain)
        if not _too_deep(data, plain):
            return data
    return orjson.dumps(_plain(value, DEPTH_MAX))


def _is_model(value: Any) -> bool:
    return hasattr(type(value), "model_dump")


def _plain(value: Any, levels: int) -> Any:
    if _is_model(value):
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


def load(data: bytes, file: str, *, size: int = SIZE_MAX, depth: int = DEPTH_MAX) -> Any:
    """Any JSON value. Its numbers are finite and have at most 64 bits, and its texts are UTF-8.

    size: the most bytes; depth: the most levels. Errors: BadFile that says what is wrong and how to fix it.
    """
    if len(data) > size:
        raise BadFile(file, "", f"has {len(data):,} bytes, and at most {size:,} are read.", "write less into it.")
    no_utf16(data, file)
    if not data or data.isspace():
        raise BadFile(file, "", "is empty.", "write one JSON object into it.")
    _few_containers(data, file)
    try:
        value = orjson.loads(data.removeprefix(BOM))
    except orjson.JSONDecodeError as error:
        try:
            data.decode()
        except UnicodeDecodeError as why:
            raise BadFile(file, "", f"is not UTF-8 (byte {why.start}).", "save it as UTF-8.") from error
        if error.msg.endswith("limit exceeded"):  # the parser's own limit is deeper than ours
            raise too_deep_file(file, depth=depth) from error
        # A single line may be a line of a batch; the caller knows that line's number.
        line = f"line {error.lineno}, " if b"\n" in data else ""
        raise BadFile(file, "", f"is not JSON: {error.msg} ({line}column {error.colno}).", STRICT) from error
    if _too_deep(data, value, depth):
        raise too_deep_file(file, depth=depth)
    if _LONG in data.translate(_DIGITS):
        _look_closely(data, file, parse_int=partial(_exact, file))
    return value


def load_text(text: str, file: str, *, size: int = SIZE_MAX, depth: int = DEPTH_MAX) -> Any:
    """As `load`, of a text, which may hold what is not UTF-8. Errors: BadFile."""
    return load(text.encode(errors="surrogatepass"), file, size=size, depth=depth)


def value_of(text: str) -> Any:
    """The JSON value of a word that a person or a program gave; a word that is no JSON is itself."""
    try:
        return load_text(text, "")
    except BadFile:
        return text


def load_next(text: str, at: int) -> tuple[Any, int] | None:
    """The JSON value that begins there in a text that goes on behind it, and where it ends; None for none.

    What agents print counts as far as it can be read: NaN and Infinity are null, and what else JSON lacks is text.
    """
    try:
        found, end = _DECODER.raw_decode(text, at)
        return load(dump(found), ""), end
    except (BadFile, ValueError, RecursionError):
        return None


def _nothing(constant: str) -> None:
    """NaN and Infinity."""


def _whole_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= 20 and is_exact(int(digits)) else digits


_DECODER = json.JSONDecoder(parse_int=_whole_or_text, parse_constant=_nothing)


def _few_containers(data: bytes, file: str) -> None:
    """Refuse more lists and objects than fit into the time and the memory that a file may take. Errors: BadFile."""
    if data.count(b"[") + data.count(b"{") <= CONTAINERS_MAX:
        return
    bare = _TEXTS.sub(b"", data)
    found = bare.count(b"[") + bare.count(b"{")
    if found > CONTAINERS_MAX:
        problem = f"has {found:,} lists and objects, and at most {CONTAINERS_MAX:,} are read."
        raise BadFile(file, "", problem, "put the data into a file of its own, and name that here.")


def _look_closely(data: bytes, file: str, **hooks: Any) -> None:
    """Read a text that was read before once more, with what Python's own reader can be told. Errors: BadFile."""
    try:
        json.loads(data.removeprefix(BOM), **hooks)
    except RecursionError as error:  # of a key that is there twice, only the last value was measured
        raise too_deep_file(file) from error


def no_utf16(data: bytes, file: str) -> None:
    """Refuse UTF-16, which Windows calls Unicode. Errors: BadFile."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadFile(file, "", "is UTF-16, not UTF-8.", "save it as UTF-8.")


def is_exact(number: int) -> bool:
    """Whether JSON keeps an integer: most readers make a float of more than 64 bits (RFC 8259, section 6)."""
    return -(1 << 63) <= number < 1 << 64


def _exact(file: str, digits: str) -> None:
    if len(digits) > 20 or not is_exact(int(digits)):
        raise BadFile(file, "", f"has the number {digits[:40]}, of more than 64 bits.", "put it in as a string.")


def sure(data: bytes, value: Any, file: str) -> None:
    """Refuse an object that has a key twice: readers of JSON disagree on its meaning (RFC 8259, section 4).

    data: the text from which the value was read. Errors: BadFile that names the key. Only for what people may write:
    drops, requests, settings, the marker. Elsewhere the last value of a key counts: what programs wrote is read
    as far as it can be, a second look costs time in every beat, and a token that was admitted must stay readable.
    """
    # A quote within a string is escaped, so every key leaves a quote and a colon; more of these than there are keys
    # are the sign to look closely, which is slow. Counting what may stand behind a key is quick, and mostly enough.
    keys = len(value) if isinstance(value, dict) and data.count(b"{") == 1 else _count_keys(value)
    if sum(map(data.count, _BEHIND_A_KEY)) > keys and len(_KEYS.findall(data)) > keys:
        _look_closely(data, file, object_pairs_hook=partial(_once, file))


def _count_keys(value: Any) -> int:
    count, level = 0, _containers([value])
    while level:
        count += sum(len(outer) for outer in level if isinstance(outer, dict))
        level = [inner for outer in level for inner in _containers(outer)]
    return count


def _once(file: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        raise BadFile(file, "", f"has the key {twice!r} twice in one object.", "keep one of the two.")
    return found


def too_deep_file(file: str, fix: str = "write the deep part as a string.", depth: int = DEPTH_MAX) -> BadFile:
    """The error of a file that is nested too deep."""
    return BadFile(file, "", f"is nested deeper than {depth} levels.", fix)


def _too_deep(data: bytes, value: Any, depth: int = DEPTH_MAX) -> bool:
    """Whether the value has more levels; cheap if there are few brackets."""
    if data.count(b"[") + data.count(b"{") <= depth:
        return False
    level = _containers([value])
    for _ in range(depth):
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(outer: Any) -> list[Any]:
    values = outer.values() if isinstance(outer, dict) else outer
    return [value for value in values if isinstance(value, (dict, list))]


def load_object(data: bytes, file: str, mend: str = ONE_OBJECT, *, size: int = SIZE_MAX) -> dict[str, Any]:
    """A JSON object. mend: what to do about anything else; size: the most bytes. Errors: BadFile."""
    try:
        value = load(data, file, size=size)
    except BadFile as error:
        raise several(error, data, file) from error
    return as_object(value, file, mend)


def several(error: BadFile, data: bytes, file: str) -> BadFile:
    """The error of a .json that cannot be read, with the fix for one that holds a task on each line."""
    lines = data.removeprefix(BOM).strip().split(b"\n", 2)[:2]
    if not file.lower().endswith(".json") or len(lines) < 2 or not all(map(_is_object, lines)):
        return error
    return BadFile(error.file, error.field, error.problem, SEVERAL)


def _is_object(line: bytes) -> bool:
    with contextlib.suppress(BadFile):
        return isinstance(load(line, ""), dict)
    return False


def as_object(value: Any, file: str, mend: str = ONE_OBJECT) -> dict[str, Any]:
    """The value if it is an object. mend: what to do about anything else. Errors: BadFile."""
    if not isinstance(value, dict):
        kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
        problem = f"is {kinds.get(type(value), 'a number')}, not an object."
        raise BadFile(file, "", problem, mend)
    return value


def load_model(model: type[M], data: bytes, file: str) -> M:
    """A file that spoold wrote as its model. Errors: BadFile."""
    return check(model, load_object(data, file), file)


def load_sent(data: bytes, file: str, mend: str = ONE_OBJECT) -> dict[str, Any]:
    """An object that a person may have written, with nothing that could be read in two ways. mend: as of
    `load_object`. Errors: BadFile.
    """
    value = load(data, file)
    sure(data, value, file)
    return as_object(value, file, mend)


def load_sent_model(model: type[M], data: bytes, file: str) -> M:
    """A file that a person may have written as its model, as `load_sent`. Errors: BadFile."""
    return check(model, load_sent(data, file), file)


def load_sent_task(data: bytes, file: str) -> Task:
    """A task that a person or a program sends, as `load_sent`. Errors: BadFile."""
    from spoold.protocol.task import Task

    return check(Task, load_sent(data, file, ONE_TASK), file)


def load_beat(data: bytes, name: BeatName) -> Heartbeat:
    """A heartbeat, as far as it can be read. node and beat come from its name, a wrong field counts as missing, and
    the notes list the fields that were passed over. Errors: none.
    """
    from spoold.protocol.heartbeat import Heartbeat

    file = name.encode()
    try:
        said, faults = load_object(data, file), []
    except BadFile as error:
        said, faults = {}, [error.problem]
    known = {"node": name.node, "beat": name.content}
    said |= known
    while True:
        try:
            beat = check(Heartbeat, said, file)
        except BadFile as error:
            field = error.field.partition(".")[0]
            if field in said and field not in known:
                del said[field]
            else:
                said = dict(known)  # what is wrong is no single field, such as that there are too many
            faults.append(f"{error.field}: {error.problem}" if error.field else error.problem)
            continue
        notes = [f"its heartbeat cannot be read in full: {fault}" for fault in faults]
        return beat.model_copy(update={"notes": (*beat.notes, *notes)}) if notes else beat


def load_task(data: bytes, file: str) -> Task:
    """A task file. Errors: BadFile, with the nearest known name for an unknown field."""
    from spoold.protocol.task import Task

    return check(Task, load_object(data, file, ONE_TASK), file)


def check_settings(table: dict[str, Any], file: str) -> Settings:
    """The table of a spool.toml as its model. Errors: BadFile that names the key."""
    from spoold.protocol.settings import Settings

    return check(Settings, table, file)


def check_marker(found: dict[str, Any], file: str) -> Identity:
    """The object of a spool.json, by its model. Errors: BadFile."""
    from spoold.protocol.settings import Marker

    marker = check(Marker, found, file)
    return Identity(marker.spool_id, marker.claim)


def check(model: type[M], value: dict[str, Any], file: str) -> M:
    """A plain object as a model. Errors: BadFile for the first field that does not fit, counting the others."""
    if len(value) > FIELDS_MAX:  # suggesting a name for each of a million unknown fields takes minutes
        problem = f"has {len(value):,} fields, and at most {FIELDS_MAX:,} are read."
        raise BadFile(file, "", problem, "put your own data into `input` or `meta`.")
    try:
        return model.model_validate(value)
    except ValueError as error:  # the validator's error is a ValueError
        from pydantic import ValidationError

        from spoold.protocol.validation_errors import bad_file

        if not isinstance(error, ValidationError):
            raise
        raise bad_file(model, value, error, file) from error
