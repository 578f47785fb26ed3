"""How much of each counted resource is in use: what limits are judged by.

The first such resource is a type, which `max_concurrent` limits: each task that is ready or claimed uses one of it.

Law: counted anew from the listings in every step, so that no crash leaves a count wrong. Moves of the same step are
counted as they are made. What may be in use counts as used: while it lasts, nothing new begins in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# What a task uses whose type is not known yet: one of every resource.
UNKNOWN = ""


@dataclass(slots=True)
class Usage:
    """By name of the resource. certain: seen in use; possible: not seen, and perhaps in use all the same."""

    certain: Counter[str] = field(default_factory=Counter)
    possible: Counter[str] = field(default_factory=Counter)

    def begin(self, possible: Iterable[str]) -> None:
        """Count from nothing again."""
        self.certain.clear()
        self.possible.clear()
        self.possible.update(possible)

    def take(self, name: str, count: int = 1) -> None:
        """So many more are in use."""
        self.certain[name] += count

    def give_back(self, name: str) -> None:
        """One is free again."""
        self.certain[name] -= 1

    def in_doubt(self, name: str) -> int:
        """How many more of it may be in use than are seen to be."""
        return self.possible[name] + self.certain[UNKNOWN] + self.possible[UNKNOWN]

    def in_use(self) -> Iterator[tuple[str, int]]:
        """What is seen in use, by name."""
        yield from sorted((name, count) for name, count in self.certain.items() if count)
