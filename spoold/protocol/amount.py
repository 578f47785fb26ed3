"""Amounts as people read them: `1 worker`, `2 workers`, `a, b and 7 more`, a length of time as `2 d 7 h`, and as much
of a text as fits.

Law: no other place decides about plural forms; a test of the house sees to that.
"""

from __future__ import annotations

# From here on the digits carry no information: the number was made up.
_DIGITS_MAX = 1e15


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
    """A text of others, in at most so many characters. Its middle is left out: the end of a sentence is the fix."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 3]} … {text[-end:]}"


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
