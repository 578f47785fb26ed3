"""Field types that several files share: priorities, sizes, times, words. Each accepts the forms that people write.

Law: a form that its writer may have meant otherwise is refused, with the fix, and never guessed: `true` is no number,
and a bare number is no time. An unknown field is an error (`Strict`).
"""

from __future__ import annotations

import re
from collections import abc
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WrapValidator,
)

from spoold.protocol.amount import MOST, clamped
from spoold.protocol.errors import WrongValue
from spoold.protocol.lanes import UNITS_MAX, as_word
from spoold.protocol.names import PRIORITIES, is_id

_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(|b|[kmgt](?:i?b)?)", re.IGNORECASE)
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_MIB = {"": 1.0, "b": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


class Strict(BaseModel):
    """A value that never changes after it was read; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


def _number(value: Any) -> Any:
    # Python takes true for 1; the person who wrote it meant something else.
    if isinstance(value, bool):
        raise WrongValue("not a number", "write a number")
    return value


def _auto(value: Any, seconds: abc.Callable[[Any], float]) -> float | str:
    """A timeout: "auto", which the pool finds by itself, or seconds."""
    if isinstance(value, str):
        if value == "auto":
            return value
        raise WrongValue('neither a number nor "auto"', 'write seconds without quotes, or "auto"')
    return seconds(value)


def _as_is(value: Any) -> Any:
    return value


def _priority(value: Any) -> Any:
    if isinstance(value, str):
        named = PRIORITIES.get(value.strip().lower())
        if named is None:
            raise WrongValue("not a priority", f"use an integer or one of {', '.join(PRIORITIES)}")
        return named
    return value


def _word_or_none(value: str) -> str:
    return value and as_word(value)


def _distinct(value: Any) -> Any:
    """Names of settings must differ by more than case: of two names that are one word the last would win."""
    seen: dict[str, str] = {}
    for name in value if isinstance(value, dict) else ():
        word = str(name).strip().lower()
        if word in seen:
            raise WrongValue(f"{seen[word]} and {name} are the same word", "keep one of them; case does not count")
        seen[word] = str(name)
    return value


def _mem_mb(value: Any) -> Any:
    """'4G', '512M' or a number of MiB, rounded up to whole MiB."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise WrongValue("not an amount of memory", "use MiB as a number, or '512M', '4G'")
        return -int(-float(match[1]) * _MIB[match[2][:1].lower()] // 1)
    return value


def _id(value: str) -> str:
    if not is_id(value):
        raise WrongValue(
            "not an id",
            "use 1 to 120 of A-Z a-z 0-9 _ = + , . - starting with a letter or digit, no final dot, "
            "and no device name such as con or nul",
        )
    return value


def _words(value: Any) -> Any:
    return [part for part in value.replace("+", ",").split(",") if part] if isinstance(value, str) else value


def _uses(value: Any) -> Any:
    """A name, a list of names, or names with the units of each."""
    named = _words(value)
    if not isinstance(named, (list, tuple)):
        return named
    if not all(isinstance(name, str) for name in named):
        raise WrongValue("not a list of names", 'write ["name"], or {name = 2} for more than one unit')
    words = [as_word(name) for name in named]
    if len(set(words)) < len(words):
        raise WrongValue("a name stands in it twice", "write {name = 2} for two units")
    return dict.fromkeys(words, 1)


def _stamp(value: Any) -> Any:
    # A bare number would count as seconds since 1970, but its writer meant "in an hour".
    if not isinstance(value, (str, datetime)) or (isinstance(value, str) and ":" not in value):
        raise WrongValue("not a time", "use RFC 3339 with a zone, such as '2026-01-31T18:00:00Z'")
    return value


def _callable(value: str) -> str:
    if _TARGET.fullmatch(value) is None:
        raise WrongValue("not the name of a callable", 'write "module:function"')
    return value


def argv(words: tuple[str, ...]) -> tuple[str, ...]:
    """A program and its arguments, as exec takes them. Errors: WrongValue."""
    if not words or not words[0].strip():
        raise WrongValue("empty", 'give the program first: ["prog", "arg"], or a line for the shell')
    if any("\0" in word for word in words):
        raise WrongValue("holds a NUL character, which no program can be given", "leave it out")
    return words


def _env(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            problem = f"{name!r} cannot be the name of a variable, or its value holds a NUL"
            raise WrongValue(problem, "write names without '=', and no NUL anywhere")
    return value


def _directory(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise WrongValue("not an absolute path", "begin it with /, and leave out any NUL")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]
Priority = Annotated[Whole, BeforeValidator(_priority), Field(ge=-(10**9), le=10**9)]
Word = Annotated[str, AfterValidator(as_word)]
OptionalWord = Annotated[str, AfterValidator(_word_or_none)]
_V = TypeVar("_V")
ByWord = Annotated[dict[Word, _V], BeforeValidator(_distinct)]
Units = Annotated[Whole, Field(ge=1, le=UNITS_MAX)]
Uses = Annotated[ByWord[Units], BeforeValidator(_uses)]
Callable = Annotated[str, AfterValidator(_callable)]
Words = Annotated[tuple[Word, ...], BeforeValidator(_words)]
MemMb = Annotated[Whole, BeforeValidator(_mem_mb), Field(ge=0, le=10**9)]
TaskId = Annotated[str, AfterValidator(_id)]
Count = Annotated[Whole, Field(ge=0, lt=1 << 64)] | Annotated[Real, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[Real, Field(ge=0, le=10**9, allow_inf_nan=False)]
Amount = Annotated[Real, Field(ge=0, le=MOST, allow_inf_nan=False)]
# In a record: one of an old release, or of another program, stays readable whatever its figures are.
Recorded = Annotated[float, BeforeValidator(clamped), AfterValidator(clamped)]
RecordedUnits = Annotated[int, BeforeValidator(clamped), AfterValidator(clamped)]
RecordedCount = Annotated[Count, BeforeValidator(clamped), AfterValidator(clamped)]
SomeSeconds = Annotated[Real, Field(gt=0, le=10**9, allow_inf_nan=False)]
# A union for pydantic, too, would name both kinds in each error.
if TYPE_CHECKING:
    Timeout = float | Literal["auto"]
else:
    Timeout = Annotated[SomeSeconds, WrapValidator(_auto), PlainSerializer(_as_is, return_type=Any)]
Stamp = Annotated[AwareDatetime, BeforeValidator(_stamp)]
Env = Annotated[dict[str, str], AfterValidator(_env)]
Directory = Annotated[str, AfterValidator(_directory)]
