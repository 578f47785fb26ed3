"""Urgency and age as text that sorts as names do: ranks and orders, in digits of base 36.

Law: a smaller rank, and of two equal ranks the earlier microsecond, comes first also as text. So both have a fixed
width. The epoch behind them only keeps the orders of two leaders apart.
"""

from __future__ import annotations

PRIORITIES = {"critical": 20, "high": 10, "medium": 0, "normal": 0, "low": -10, "background": -20}
BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS = [high + low for high in BASE36 for low in BASE36]
ORDER = r"[0-9a-z]{10}-[0-9a-z]{1,6}"
MICROS_MAX, EPOCH_MAX = 36**10 - 1, 36**6 - 1


def base36(number: int, width: int = 1) -> str:
    """The number in base 36, lower case, padded with zeros to `width` digits."""
    digits = ""
    while number:
        number, rest = divmod(number, len(_PAIRS))
        digits = _PAIRS[rest] + digits
    return digits.lstrip("0").rjust(width, "0")


def encode_order(micros: int, epoch: int) -> str:
    """Age as a name: microseconds since 1970 at admission, then the epoch of the leader that admitted.

    The epoch keeps the names of two leaders apart; within an epoch the leader never gives the same number twice.
    """
    return f"{base36(micros, 10)}-{base36(epoch)}"


def order_micros(order: str) -> int:
    """The microseconds since 1970 in an order."""
    return int(order.partition("-")[0], 36)


def rank_of(priority: int) -> int:
    """Sorts as names do: a smaller rank is more urgent. Priorities beyond ±4999 count as ±4999."""
    return 5000 - max(-4999, min(4999, priority))
