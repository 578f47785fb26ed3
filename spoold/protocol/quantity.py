"""How large an amount may be, and how amounts are added: costs, tokens, lengths of time, counts.

Law: an amount that others wrote is finite, 0 or more and at most MOST before anything is counted with it, and a sum
stops at MOST. So neither one figure nor any number of them can end a node.
"""

from __future__ import annotations

from typing import Any, TypeVar

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
