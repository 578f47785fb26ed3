"""What one task locks, and whether two demands conflict.

Law: two demands conflict if a pattern that one of them writes may overlap with any pattern of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.rules.locks.overlap import overlap


@dataclass(frozen=True, slots=True)
class Demand:
    """The patterns that a task writes, and those that it only reads. child: whether it is one below another task."""

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    child: bool = False

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def clash(self, other: Demand) -> tuple[str, str] | None:
        """A pattern of each that overlap, one of them written; None if both may run together."""
        for mine in self.write:
            for theirs in (*other.write, *other.read):
                if overlap(mine, theirs):
                    return mine, theirs
        for mine in self.read:
            for theirs in other.write:
                if overlap(mine, theirs):
                    return mine, theirs
        return None

    def told(self) -> str:
        """In words: `write src/api/**, read docs/**`."""
        kinds = (("write", self.write), ("read", self.read))
        return ", ".join(f"{kind} {pattern}" for kind, patterns in kinds for pattern in patterns)


NO_LOCKS = Demand()
