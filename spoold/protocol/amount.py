"""Amounts as people read them: `1 worker`, `2 workers`, `a, b and 7 more`, a length of time as `2 d 7 h`, as much of
a text as fits; how large an amount may be, and how amounts are added.

Law: no other place decides about plural forms; a test of the house sees to that.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

# From here on the digits carry no information: the number was made up.
_DIGITS_MAX = 1e15
# How our errors begin their fix.
_FIX = re.compile(r"\b[Ff]ix: ")


def figure(value: float, decimals: int = 0) -> str:
    """The number as people read it, with thousands separators."""
    return f"{value:,.{decimals}f}" if abs(value) < _DIGITS_MAX else f"{value:.3g}"


def amount(number: int, noun: str, plural: str | None = None) -> str:
    """The number and the noun in its right form. plural: if it is not the noun plus s."""
    return f"{figure(number)} {noun if number == 1 else plural or f'{noun}s'}"


def some(words: list[str], named: int = 5) -> str:
    """The first few words, and the number of the others."""
    more = f" and {len(words) - named} more" if len(words) > named else ""
    return f"{', '.join(words[:named])}{more}"


def clip(text: str, most: int) -> str:
    """A text of others, in at most so many characters. Its middle is left out: the end of a sentence is the fix. One
    that says `Fix:` keeps it from its first word, as far as it has room in two thirds."""
    if len(text) <= most:
        return text
    at = len(text) - most // 3
    at = min(at, max((found.start() for found in _FIX.finditer(text)), default=at))
    end = min(len(text) - at, 2 * most // 3)
    if at <= most - end:
        return f"{text[: most - 2]} …"
    return f"{text[: most - end - 3]} … {text[at:][:end]}"


def has_fix(text: str) -> bool:
    """Whether a text names a fix, as our errors do."""
    return _FIX.search(text) is not None


def length(seconds: float) -> str:
    """A length of time in the two largest units that fit, days being the largest."""
    if abs(seconds) >= _DIGITS_MAX:
        return f"{figure(seconds)} s"
    whole = round(seconds)
    for size, unit, smaller, sub in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size:,} {unit}{f' {rest} {sub}' if rest else ''}"
    return f"{whole} s"


def precise(seconds: float) -> str:
    """A length of time as `length`, a short one with its tenths."""
    return f"{seconds:.1f} s" if 0 <= seconds < 10 else length(seconds)


# How large an amount may be, and how amounts are added: costs, tokens, lengths of time, counts.
# Law: an amount that others wrote is finite, 0 or more and at most MOST before anything is counted with it, and a
# sum stops at MOST. So neither one figure nor any number of them can end a node.


# The most USD, tokens, seconds or pieces: beyond what any pool can spend, and exact in 64 bits to a millionth.
MOST = 10**12

N = TypeVar("N", int, float)


def is_amount(value: Any, least: float = 0) -> bool:
    """Whether a value is a number from `least` to MOST; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= MOST


def clamped(value: Any) -> Any:
    """The nearest amount to a number, which keeps its type; anything else as it is. For records of old releases."""
    if isinstance(value, bool) or not isinstance(value, int | float) or 0 <= value <= MOST:
        return value
    return type(value)(MOST if value > 0 else 0)  # what is no number at all is above nothing


def plus(one: N, other: N, most: int = MOST) -> N:
    """The sum of two amounts, at most `most`. Errors: none, whatever their size."""
    both = one + other
    return both if both <= most else type(both)(most)
