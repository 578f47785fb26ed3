"""The handlers of which only so many tasks may run on this worker at once (`max_concurrent`).

Law: a bound counts what this worker runs and claims, and nothing else: it holds for one process, and after a start it
counts anew. A task that waits for others, with its slot lent, does not count: its own children may be of its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from spoold.protocol.amount import amount
from spoold.protocol.lanes import Lane

NO_BOUNDS: Mapping[str, int] = {}


class Crowding:
    """Knows of which types enough tasks run here. bounds: how many may, by type."""

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self.bounds = bounds
        self._count: Counter[str] = Counter()

    def begin(self) -> None:
        """Count anew: what runs is told next."""
        self._count.clear()

    def take(self, lane: Lane) -> None:
        """Count a task that runs here, or is about to."""
        if self._most(lane) is not None:
            self._count[lane.type] += 1

    def lets(self, lane: Lane) -> bool:
        """Whether one more task of the lane may run."""
        most = self._most(lane)
        return most is None or self._count[lane.type] < most

    def needs(self, lane: Lane) -> dict[str, float]:
        """What a task of the lane takes of its handler's bound, as `keeping` names it."""
        return {} if self._most(lane) is None else {f"handler {lane.type}": 1.0}

    def has(self, lane: Lane) -> dict[str, float]:
        """The bound of the lane's handler."""
        most = self._most(lane)
        return {} if most is None else {f"handler {lane.type}": float(most)}

    def full(self, lane: Lane, others: Iterable[Lane]) -> bool:
        """Whether so many of these others are of its type that it may not run beside them."""
        most = self._most(lane)
        return most is not None and sum((one.run, one.type) == (lane.run, lane.type) for one in others) >= most

    def shuns(self) -> dict[str, str]:
        """The types that are left to others for now, with the reason, by the count of the last step."""
        return {
            kind: f"it runs {amount(count, 'task')} of this type, as many as it may (max_concurrent of its handler)"
            for kind, count in self._count.items()
            if count >= self.bounds[kind]
        }

    def _most(self, lane: Lane) -> int | None:
        """Return how many tasks of the lane's type may run here; None for any number."""
        return self.bounds.get(lane.type) if lane.run == "handler" else None
