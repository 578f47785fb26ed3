"""Faults of spoold that a test injects: only these are contained while tests and simulations run.

Law: a node that contains a fault that nobody has injected would hide a bug, so there every other one stays loud.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spoold.store import contained_faults


class Injected(Exception):
    """An exception that a test raises in the product."""


class Recursion(Injected, RecursionError):
    """Something is nested too deep."""


class Overflow(Injected, OverflowError):
    """A number is too large."""


class Memory(Injected, MemoryError):
    """Memory was short."""


class Missing(Injected, KeyError):
    """A name that was taken for granted is not there."""


class Wrong(Injected, ValueError):
    """A value that nobody has thought of."""


class Unproved(Injected, AssertionError):
    """An assertion does not hold."""


class Undecodable(Injected, UnicodeDecodeError):
    """Bytes that are no text."""

    def __init__(self, *_: object) -> None:
        UnicodeDecodeError.__init__(self, "utf-8", b"\xff", 0, 1, "injected")


KINDS: tuple[type[Injected], ...] = (Injected, Recursion, Overflow, Memory, Missing, Wrong, Unproved, Undecodable)

_contains = contained_faults.contains


def _injected(error: BaseException) -> bool:
    """Whether an exception, or one that it was raised for, was injected."""
    seen: list[BaseException] = []  # an error may be its own context
    above: BaseException | None = error
    while above is not None and above not in seen:
        if isinstance(above, Injected):
            return True
        seen.append(above)
        above = above.__cause__ or above.__context__
    return False


@contextmanager
def strictly() -> Iterator[None]:
    """Inside, nodes contain what was injected and nothing else."""
    before = contained_faults.contains
    contained_faults.contains = lambda error: _contains(error) and _injected(error)
    try:
        yield
    finally:
        contained_faults.contains = before


@contextmanager
def as_shipped() -> Iterator[None]:
    """Inside, nodes contain faults as they do for users."""
    before = contained_faults.contains
    contained_faults.contains = _contains
    try:
        yield
    finally:
        contained_faults.contains = before
