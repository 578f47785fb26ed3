"""Taking turns: what is too long for one run is played in parts, which together are all of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Part(NamedTuple):
    """One of so many parts, counted from 1."""

    number: int = 1
    of: int = 1

    def among(self, things: Sequence[T]) -> list[T]:
        """The things whose turn it is."""
        return list(things[self.number - 1 :: self.of])


def part(text: str) -> Part:
    """Read I/N. Errors: ArgumentTypeError."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part: write 2/5 for the second of five")
    return Part(int(number), int(of))
