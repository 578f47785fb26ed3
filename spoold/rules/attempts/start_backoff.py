"""How long a worker claims nothing when its machine could not start a task.

Failed starts are the quickest of all, so without a pause the worker would take every task.

Law: the pause grows with each failure in a row, and never beyond MOST_S: a worker whose machine was repaired begins
again by itself.
"""

from __future__ import annotations

FIRST_S, MOST_S = 1.0, 60.0


def pause_s(failed: int) -> float:
    """Seconds, after so many failed starts in a row: twice as long each time, to a bound."""
    return min(FIRST_S * 2.0 ** min(failed - 1, 64), MOST_S)
