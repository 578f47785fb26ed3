"""Values from a command line: 90s, cpu=2,mem=4G, K=V, JSON, files of tasks.

Law: every wrong value is a BadFile that names the option or the file, and the fix; the group makes exit code 2 of it.

Touches: files, the terminal.
"""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def duration(text: str, option: str) -> float:
    """Return '90', '90s', '5m', '1.5h' or '2d' as seconds. Errors: BadFile."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise BadFile(option, "", f"{text!r} is no time.", "write seconds, or 90s, 5m, 1.5h, 2d.")
    return float(match[1]) * _SECONDS[match[2]]


def timeout(text: str) -> float | str:
    """Return the timeout of a task: auto, or as `duration`. Errors: BadFile."""
    return "auto" if text.strip().lower() == "auto" else duration(text, "--timeout")


def moment(text: str, option: str) -> datetime:
    """Return a moment with its zone, from text such as '2026-01-31T18:00:00Z'. Errors: BadFile."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text.strip())
        if found.utcoffset() is not None:
            return found
    raise BadFile(option, "", f"{text!r} is no moment with a zone.", "write it as in 2026-01-31T18:00:00Z.")


def past(text: str, option: str) -> datetime:
    """Return '90s' or '2h' as the moment so long ago, and a moment as `moment` does. Errors: BadFile."""
    if _DURATION.fullmatch(text.strip().lower()):
        with suppress(OverflowError):
            return datetime.now(UTC) - timedelta(seconds=duration(text, option))
    try:
        return moment(text, option)
    except BadFile as error:
        mend = "write how long ago, such as 90s, 5m, 2h, 1d, or a moment as in 2026-01-31T18:00:00Z."
        raise BadFile(option, "", f"{text!r} is no time.", mend) from error


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return 'K=V' words as a mapping. Errors: BadFile."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadFile(option, "", f"{text!r} has no name before a '='.", f"write {option} NAME=VALUE.")
        found[name] = value
    return found


def requirements(texts: Iterable[str]) -> dict[str, Any]:
    """Return 'cpu=2,mem=4G,gpu=1,label=docker' as `requires`; several options add up. Errors: BadFile."""
    found: dict[str, Any] = {}
    for text in texts:
        for name, value in pairs((part.strip() for part in text.split(",") if part.strip()), "--requires").items():
            if name in ("label", "labels"):
                found["labels"] = [*found.get("labels", []), *value.split("+")]
            else:
                found[name] = _number(value, name)
    return found


def units(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Return 'a' and 'b=2' as names with their units. Errors: BadFile."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, count = text.partition("=")
        found[name] = integer(count, option) if count else 1
    return found


def json_value(text: str, option: str) -> Any:
    """Return the value of an option's JSON, or of @FILE that holds it. Errors: BadFile."""
    if text.startswith("@"):
        return codec.load(read_file(text[1:]), text[1:])
    try:
        return codec.load(text.encode(errors="surrogateescape"), option)
    except BadFile as error:
        mend = f"quote it for the shell: {option} '{{\"key\": 1}}', plain text: {option} '\"text\"'."
        raise BadFile(option, "", error.problem, mend) from error


def read_file(path: str) -> bytes:
    """Return the bytes of the caller's file, or of stdin for '-'. Errors: BadFile."""
    if path == "-":
        return _from_stdin()
    try:
        with open(path, "rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                raise BadFile(path, "", "is a device, which may never end.", "name a file, or - for stdin.")
            return file.read()
    except OSError as error:
        mend = "check the name; before a command, write `--`."
        raise BadFile(path, "", f"cannot be read: {error.strerror}.", mend) from error


def standard_input(most_bytes: int) -> str:
    """Return stdin as text. Errors: BadFile if it cannot be read, or for text that no task can hold."""
    data = _from_stdin(most_bytes + 1)
    if len(data) > most_bytes:
        problem = f"standard input has more than {most_bytes:,} bytes, and is part of the task."
        raise BadFile("--stdin", "", problem, "put it into a file on the share, and name that in the command.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        mend = "put it into a file on the share, and name that in the command."
        raise BadFile("--stdin", "", "standard input is no UTF-8 text.", mend) from None


def _from_stdin(most_bytes: int = -1) -> bytes:
    """Return the bytes of stdin. Errors: BadFile: an OSError would be taken for an error of the spool."""
    try:
        return sys.stdin.buffer.read(most_bytes)
    except OSError as error:
        mend = "send it through a pipe, or from a file that is open for reading."
        raise BadFile("stdin", "", f"cannot be read: {error.strerror}.", mend) from error


def tasks_in(path: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the content of a file: one task of a .json, many of a .jsonl, either from stdin.

    Errors: BadFile.
    """
    file = "stdin" if path == "-" else path
    data = read_file(path)
    lines = [line for line in data.removeprefix(codec.BOM).split(b"\n") if line.strip()]
    if not path.lower().endswith(".jsonl"):
        try:
            return _object(data, file)
        except BadFile:
            # Several lines that are no JSON together may each be a task; one bad file must not be taken for that.
            if path != "-" or len(lines) < 2 or not lines[0].strip().endswith(b"}"):
                raise
    found = list(_objects(data, file))
    if not found:
        raise BadFile(file, "", "is empty.", "write one task {…} a line.")
    return found


def _objects(data: bytes, file: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.removeprefix(codec.BOM).split(b"\n"), 1):
        if line.strip():
            yield _object(line, f"{file} line {number}")


def _object(data: bytes, file: str) -> dict[str, Any]:
    """Return a task; refuse values that would change silently when they are read and written again."""
    found = codec.load_object(data, file)
    codec.sure(data, found, file)
    return found


def integer(text: str, option: str, field: str = "") -> int | str:
    """Return a whole number as a number, other text as it is. Errors: BadFile for a number that JSON cannot hold."""
    try:
        number = int(text)
    except ValueError:
        return text
    if abs(number) >= 2**63:
        raise BadFile(option, field, f"{text} has more than 64 bits.", "write a smaller number.")
    return number


def _number(text: str, field: str) -> int | float | str:
    whole = integer(text, "--requires", field)
    if not isinstance(whole, str):
        return whole
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise BadFile("--requires", field, f"{text!r} is no finite number.", "write how much it needs, such as 2.")
    return number
