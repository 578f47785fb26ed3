"""How the fields of a plain file are read: a fast check that a value fits a model, without the model.

Five modules read so, for the files that a short command reads and for the task that it submits: `plain_settings`,
`plain_settings_table`, `plain_task` and `plain_status`. Building the models takes longer than a whole `spool submit`,
and most files do not need them. A yes is the model's own answer, with the same values; a test holds each shape to its
model. All else is "not sure", never an error: then the caller asks the model, and people read the model's words.

Law: a reader returns the value exactly as the model holds it, or raises Unsure, and no other error. It goes by the
exact type, so `true` is never taken for 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from spoold.protocol.lanes import WORD
from spoold.protocol.names import PRIORITIES, is_id

_WORD = re.compile(WORD)

# Returns a field's value as the model holds it. Errors: Unsure.
Reader = Callable[[Any], Any]
Shape = Mapping[str, Reader]


class Unsure(Exception):
    """The caller must ask the model."""


class Plain:
    """The fields of a file as attributes, named as in its model, and those methods of a model that readers need."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.__dict__.update(fields)

    def model_copy(self, *, update: Mapping[str, Any]) -> Plain:
        """A copy with other values."""
        return Plain({**self.__dict__, **update})

    def model_dump(self, *, mode: str = "json") -> dict[str, Any]:
        """The fields as JSON values, in the model's order. mode: for callers that also have models."""
        del mode
        return {name: _dumped(value) for name, value in self.__dict__.items()}


def _dumped(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.model_dump()
    if isinstance(value, dict):
        return {name: _dumped(inner) for name, inner in value.items()}
    return [_dumped(inner) for inner in value] if isinstance(value, tuple) else value


def anything(value: Any) -> Any:
    """Take any value."""
    return value


def text(value: Any) -> str:
    """Take a string."""
    if type(value) is not str:
        raise Unsure
    return value


def flag(value: Any) -> bool:
    """Take true or false."""
    if type(value) is not bool:
        raise Unsure
    return value


def whole(low: int | None = None, high: int | None = None) -> Reader:
    """Take a whole number within these limits."""

    def read(value: Any) -> int:
        if type(value) is not int or (low is not None and value < low) or (high is not None and value > high):
            raise Unsure
        return value

    return read


def real(low: float | None = None, high: float | None = None, *, above: float | None = None) -> Reader:
    """Take a number within these limits, as a float."""

    def read(value: Any) -> float:
        if type(value) not in (int, float) or not -1e300 < value < 1e300:
            raise Unsure
        if (low is not None and value < low) or (high is not None and value > high):
            raise Unsure
        if above is not None and value <= above:
            raise Unsure
        return float(value)

    return read


def one_of(*texts: str) -> Reader:
    """Take one of these strings."""

    def read(value: Any) -> str:
        if type(value) is not str or value not in texts:
            raise Unsure
        return value

    return read


def maybe(inner: Reader) -> Reader:
    """Take null, or a value that `inner` takes."""
    return lambda value: None if value is None else inner(value)


def listed(inner: Reader) -> Reader:
    """Take a list, as a tuple."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Unsure
        return tuple(map(inner, value))

    return read


def by_name(inner: Reader) -> Reader:
    """Take an object with values that `inner` takes."""

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Unsure
        return {name: inner(one) for name, one in value.items()}

    return read


def part(shape: Shape) -> Reader:
    """An object in which no field is missing; unknown fields are kept."""

    def read(value: Any) -> Plain:
        if type(value) is not dict or not shape.keys() <= value.keys():
            raise Unsure
        fields = {name: reader(value[name]) for name, reader in shape.items()}
        more = {name: inner for name, inner in value.items() if name not in shape}
        if any(name.startswith(("_", "model_")) for name in more):
            raise Unsure
        return Plain(fields | more)

    return read


def table(shape: Shape) -> Reader:
    """An object in which any field may be missing, and none is unknown."""

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict or not value.keys() <= shape.keys():
            raise Unsure
        return {name: shape[name](inner) for name, inner in value.items()}

    return read


def word(value: Any) -> str:
    """Take a type, label or pool as lanes spell it."""
    if _WORD.fullmatch(text(value)) is None:
        raise Unsure
    return str(value)


def task_id(value: Any) -> str:
    """Take an id of a task."""
    if not is_id(text(value)):
        raise Unsure
    return str(value)


def priority(value: Any) -> int:
    """Take a number, or one of the names."""
    if type(value) is str and value in PRIORITIES:
        return PRIORITIES[value]
    return int(whole(-(10**9), 10**9)(value))


seconds = real(0, 10**9)
some_seconds = real(above=0, high=10**9)
RETRIES = whole(0, 1000)
# The most generations below a task that any spool may allow.
DEPTH_MAX = 100
