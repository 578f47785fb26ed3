"""How long a worker claims nothing whose machine could not start a task.

Starts that fail are the quickest of all, so without a pause it would take every task that there is.
"""

from __future__ import annotations

FIRST_S, MOST_S = 1.0, 60.0


def pause_s(failed: int) -> float:
    """Seconds, after so many starts in a row that failed: twice as long each time, to a bound."""
    return min(FIRST_S * 2.0 ** min(failed - 1, 64), MOST_S)
