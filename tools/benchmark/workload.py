"""What every contender's workers call: nothing, or next to nothing, and a line in the ledger.

Law: the same functions for all; they return a value, so that a result has to be kept. Standard library only.
"""

from __future__ import annotations

import time

from tools.benchmark.ledger import note


def noop(folder: str, number: int) -> int:
    """Nothing; returns its number."""
    note(folder, number)
    return number


def noop_of(arguments: tuple[str, int]) -> int:
    """As `noop`, for a peer whose `map` gives each call a single argument."""
    return noop(*arguments)


def nap(folder: str, number: int, seconds: float) -> int:
    """Some milliseconds of waiting, so that a kill strikes in the middle of a task; noted only if it does not."""
    time.sleep(seconds)
    note(folder, number)
    return number


def warm(seconds: float) -> None:
    """Keep a worker's process busy while others are started."""
    time.sleep(seconds)
