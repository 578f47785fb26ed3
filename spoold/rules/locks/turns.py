"""The tasks that wait for nothing but locks, in line.

Law: the older task goes first, and a minute of age weighs as much as one point of priority, an hour at most. So an
urgent task passes those that came shortly before, and no task is passed for ever.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Set
from dataclasses import dataclass

from spoold.protocol.name_parts import age_in, rank_in
from spoold.protocol.order import order_micros, rank_of
from spoold.rules.locks.demand import Demand

# A place in line: a moment in microseconds since 1970, then the name, so that no two are equal.
Turn = tuple[int, str]
POINT_MICROS, POINTS_MAX = 60_000_000, 60
# So many of the first in line keep others back. Of those behind, each comes to be one of the first.
KEEPING = 100


def turn_of(file: str) -> Turn:
    """The place in line of a task with this name in waiting/."""
    points = max(-POINTS_MAX, min(POINTS_MAX, rank_of(0) - rank_in(file)))
    return order_micros(age_in(file)) - points * POINT_MICROS, file


@dataclass(frozen=True, slots=True)
class Waiter:
    """One task in line."""

    turn: Turn
    demand: Demand
    lane: str


class Line:
    """All tasks in line, by key. shut: lanes whose tasks wait for something else just now, and keep nobody back.

    firm: the tasks that keep others back even so, since what they wait for besides comes from later tasks.
    """

    def __init__(self) -> None:
        self._waiters: dict[str, Waiter] = {}
        self._order: list[tuple[Turn, str]] = []
        self.shut: Set[str] = frozenset()
        self.firm: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, task_key: str) -> bool:
        return task_key in self._waiters

    def get(self, task_key: str) -> Waiter | None:
        """The task with that key."""
        return self._waiters.get(task_key)

    def first(self) -> list[tuple[str, Waiter]]:
        """Those that keep others back, by key."""
        return [(task_key, self._waiters[task_key]) for _, task_key in self._order[:KEEPING]]

    def lanes(self) -> set[str]:
        """The lanes of those that keep others back."""
        return {waiter.lane for _, waiter in self.first()}

    def join(self, task_key: str, waiter: Waiter) -> None:
        """Put a task in line, or at its new place there."""
        if self._waiters.get(task_key) != waiter:
            self.leave(task_key)
            self._waiters[task_key] = waiter
            insort(self._order, (waiter.turn, task_key))

    def leave(self, task_key: str) -> bool:
        """Take a task out of the line; whether it was there."""
        waiter = self._waiters.pop(task_key, None)
        if waiter is None:
            return False
        del self._order[bisect_left(self._order, (waiter.turn, task_key))]
        return True

    def before(self, turn: Turn) -> Iterator[tuple[str, Waiter]]:
        """Those that keep back a task of this turn, the first one first."""
        for place, task_key in self._order[:KEEPING]:
            if place >= turn:
                return
            waiter = self._waiters[task_key]
            if waiter.lane not in self.shut or task_key in self.firm:
                yield task_key, waiter

    def position(self, turn: Turn) -> int:
        """How many stand in line before that turn."""
        return bisect_left(self._order, (turn, ""))
