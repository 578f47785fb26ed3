"""Attempts whose supervisor was lost: a worker warns of them for a while, since a task may do that on purpose.

Law: this room remembers and touches nothing. Times are seconds on the worker's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.runner.job import Ending

REMEMBERED_S = 600.0
# More than this many would only push other notes out of sight.
AT_MOST = 3


class Losses:
    """The attempts that were lost lately, the latest last."""

    def __init__(self) -> None:
        self._lost: list[tuple[float, str]] = []

    def look(self, now: float, ended: Iterable[Ending]) -> None:
        """Add the lost attempts among these endings, and forget old ones."""
        self._lost = [(at, note) for at, note in self._lost if now - at < REMEMBERED_S]
        self._lost += [(now, f"attempt {end.key} was lost: {end.message}") for end in ended if end.kind == "lost"]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people."""
        return tuple(note for _, note in self._lost[-AT_MOST:])
