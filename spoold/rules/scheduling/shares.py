"""Shares of the slots that are alive, by class: what is reserved for each, and what it may borrow.

Tasks that name no class are of the class `default`, whose share is what the others leave.

Law: no class takes a slot that another has reserved and wants. A class that borrows gets what others leave idle; they
get it back as tasks end, and no task is stopped for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Shares:
    """total: slots of the workers that are alive; slots: reserved, by class; borrow: classes that may use what others
    leave idle; wants: classes of which a task waits for nothing but a slot.
    """

    total: int
    slots: Mapping[str, int]
    borrow: frozenset[str]
    wants: frozenset[str] = frozenset()

    def of(self, name: str) -> int:
        """How many slots are reserved for a class."""
        if name in self.slots:
            return self.slots[name]
        return max(0, self.total - sum(self.slots.values())) if name == DEFAULT else 0

    def lets(self, name: str, used: Mapping[str, int]) -> bool:
        """Whether one more task of the class may take a slot. used: slots in use, or perhaps in use, by class."""
        free = self.total - sum(used.values())
        if free <= 0:
            return False
        if used.get(name, 0) < self.of(name):
            return True
        others = {*self.slots, DEFAULT} - {name}
        due = sum(max(0, self.of(other) - used.get(other, 0)) for other in others if other in self.wants)
        return self.borrows(name) and free > due

    def borrows(self, name: str) -> bool:
        """Whether a class may use what others leave idle: also `default`, if they leave it nothing of its own, or its
        tasks would wait for ever in a small pool.
        """
        return name in self.borrow or (name == DEFAULT and not self.of(name))
