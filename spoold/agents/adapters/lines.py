"""The JSON objects in a line of output: command lines print warnings before, after and between their events.

Law: pure. What is no JSON is passed over, also when a line ends in the middle of an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spoold.protocol import codec
from spoold.protocol.amount import is_amount

# How often an object's beginning is looked for in one line: a line of a megabyte of braces must not take minutes.
TRIES = 64


def objects(line: str) -> Iterator[dict[str, object]]:
    """Return the objects of a line, in order; those within another are part of it."""
    at = line.find("{")
    for _ in range(TRIES):
        if at < 0:
            return
        found, end = codec.load_next(line, at) or (None, at + 1)
        if isinstance(found, dict):
            yield found
        at = line.find("{", end)


def inner(value: object, *path: str) -> dict[str, object]:
    """Return the object at a path of keys; {} where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; [] where it is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a string; '' for anything else."""
    return value if isinstance(value, str) else ""


def amount(value: object) -> float:
    """Return an amount; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and is_amount(value) else 0.0


def count(value: object) -> int:
    """Return an amount as an int; 0 for anything else."""
    return int(amount(value))
