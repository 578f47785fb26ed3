"""Counted resources: how much of each one task uses, how much there is, and which are short.

A resource is a name. Every task that is ready or claimed uses some units of it. The first instance is the type of a
task: `max_concurrent` is the capacity of `type:NAME`, and each task of the type uses one unit.

Law: values only. Nothing is stored: usage is counted from ready/ and claimed/, so that no crash leaves it wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from spoold.protocol.settings import Settings

# Units by the name of the resource; each is at least 1.
Uses = Mapping[str, int]
# The use of a task whose type is not known: it may use any resource.
UNKNOWN = ""
_TYPE = "type:"


@dataclass(frozen=True, slots=True)
class Capacity:
    """units: how many may be in use at once. whose and setting: its name for people, and the setting to change.

    most: the most units that one task can use; a task of unknown type counts for so many.
    """

    units: int
    whose: str
    setting: str
    most: int = 1


@dataclass(frozen=True, slots=True)
class Stock:
    """Every counted resource at one moment. A resource without a capacity has no limit.

    used: units seen in use; doubtful: units that may be in use as well.
    """

    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    doubtful: Mapping[str, int] = field(default_factory=dict)

    def short_of(self, uses: Uses) -> str | None:
        """The first resource that has too little left for one more such task; None if there is enough of all."""
        for name, units in uses.items():
            there = self.capacity.get(name)
            if there is not None and self.used.get(name, 0) + self.doubtful.get(name, 0) + units > there.units:
                return name
        return None

    def beyond(self, uses: Uses) -> int:
        """How many such tasks must give theirs back until no resource is used beyond its capacity.

        Units in doubt send nothing back.
        """
        over = (
            -((there.units - self.used.get(name, 0)) // units)
            for name, units in uses.items()
            if (there := self.capacity.get(name)) is not None
        )
        return max(0, max(over, default=0))


@lru_cache(maxsize=4096)
def uses_of(kind: str) -> Uses:
    """The use of one task of a type; '' for a task of unknown type."""
    return {f"{_TYPE}{kind}" if kind else UNKNOWN: 1}


def kind_counted(name: str) -> str | None:
    """The type that a resource counts, '' for tasks of unknown type; None for a resource that counts no type."""
    if name == UNKNOWN:
        return ""
    return name.removeprefix(_TYPE) if name.startswith(_TYPE) else None


def capacities(settings: Settings) -> dict[str, Capacity]:
    """The capacity of every resource that the settings limit."""
    return {
        name: Capacity(own.max_concurrent, f"type {kind}", f"[types.{kind}] max_concurrent")
        for kind, own in settings.types.items()
        if own.max_concurrent is not None
        for name in uses_of(kind)
    }


def stock_seen(capacity: Mapping[str, Capacity], types: Mapping[str, Mapping[str, int]]) -> Stock:
    """The stock as a snapshot shows it. types: how many tasks of each are active; '' is an unknown type."""
    active = {kind: counts.get("active", 0) for kind, counts in types.items()}
    used = {name: units * count for kind, count in active.items() for name, units in uses_of(kind).items()}
    return Stock(capacity, used, {name: there.most * used.get(UNKNOWN, 0) for name, there in capacity.items()})
