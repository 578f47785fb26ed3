"""The parameters of a verb: values that need no conversion are taken as they are.

The parser builds a validator for each parameter, also for one that is not given, and imports pydantic for that, which
takes half the time of a short command. Law: the value is the same as the parser's; a parameter of any other kind is
left to the parser.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def read_lightly(parameters: Iterable[Any]) -> None:
    """Let the parser read these parameters without a validator where their value needs none."""
    for parameter in parameters:
        if not getattr(parameter, "reads_lightly", False):
            parameter.reads_lightly = True
            parameter.process_value = _light(parameter)


def _light(parameter: Any) -> Any:
    read = parameter.process_value
    many = parameter.multiple or parameter.nargs == -1
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            value = () if many else None
        elif kind is str and not many and _is_text(value):
            pass
        elif kind == list[str] and many and _are_texts(value):
            value = list(value)
        else:
            return read(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    return process_value


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_text, value))


def _is_text(value: Any) -> bool:
    """Return whether it is a str of characters only: the parser handles words that are not UTF-8."""
    return type(value) is str and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))
