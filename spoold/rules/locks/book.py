"""Who holds what, and who keeps a task back.

Law: a holder whose demand is not known holds everything. Nobody keeps himself back. A task is kept back by holders,
and by those before it in line: so a writer among endless readers comes to its turn. But none in line that waits for a
holder which waits for others keeps a task below others back; and once that one has waited for long, it keeps nobody
back. Else all of them might wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from spoold.rules.locks.demand import Demand
from spoold.rules.locks.turns import Line, Turn


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who keeps a task back. mine and theirs: the patterns that overlap, '' where that of the holder is not known."""

    key: str
    mine: str
    theirs: str
    holds: bool


@dataclass(slots=True)
class Reserved:
    """What a person or a running task has reserved, until a moment (s since 1970). task: '' for a person; attempt: of
    that task; by, at, reason: for people. granted: nothing that conflicts with it is left. over: its file goes.
    """

    demand: Demand
    until: float
    task: str = ""
    attempt: int | None = None
    by: str = ""
    at: str = ""
    reason: str = ""
    granted: bool = False
    over: bool = False


class Book:
    """The holders by key, each with its demand, None if that is not known; and the line of those that wait.

    reserved: the reservations among the holders, by their keys, which begin with +. told: words on a holder. parents:
    keys of tasks that run and wait for others; idle: those of them that have waited for long.
    """

    def __init__(self) -> None:
        self.held: dict[str, Demand | None] = {}
        self.line = Line()
        self.reserved: dict[str, Reserved] = {}
        self.told: dict[str, str] = {}
        self.parents: Set[str] = frozenset()
        self.idle: Set[str] = frozenset()
        self._let_go: set[str] = set()

    def begin(self, held: Mapping[str, Demand | None]) -> set[str]:
        """Take these for the holders from now on; return those that hold no more, or hold something else."""
        gone = {key for key, demand in self.held.items() if key not in held or held[key] != demand}
        gone |= self._let_go - held.keys()
        self._let_go.clear()
        self.held = dict(held)
        return gone

    def hold(self, key: str, demand: Demand) -> None:
        """Count one more holder."""
        self.held[key] = demand
        self._let_go.discard(key)

    def let_go(self, key: str) -> None:
        """Count one holder less. What waits for it may wait for nobody now, as the next `begin` says."""
        self.held.pop(key, None)
        self._let_go.add(key)

    def clashing(self, key: str) -> list[str]:
        """The holders that conflict with this one, as far as both demands are known."""
        mine = self.held.get(key)
        if mine is None:
            return []
        others = [(other, held) for other, held in self.held.items() if other != key and held is not None]
        return [other for other, held in others if mine.clash(held)]

    def grant(self) -> list[str]:
        """Grant each reservation with which nothing older conflicts; return those that were not granted before."""
        found = []
        for name in sorted(self.reserved):
            mine = self.reserved[name]
            if not mine.granted and not mine.over and self.against(name) is None:
                mine.granted = True
                found.append(name)
        return found

    def against(self, name: str) -> Keeper | None:
        """Who keeps a reservation waiting: a task that runs or may run, but its own, or an older reservation."""
        mine = self.reserved[name]
        others = {k: held for k, held in self.held.items() if k != mine.task and not k.startswith("+")}
        before = ((k, one) for k, one in self.reserved.items() if not one.over and (k < name or one.granted))
        others |= {k: one.demand for k, one in before if k != name}
        return _first(mine.demand, others.items())

    def overtakes(self, name: str) -> str | None:
        """A reservation that was granted already, and that this one would come before."""
        mine = self.reserved[name]
        granted = (k for k, one in self.reserved.items() if k > name and one.granted and not one.over)
        return next((k for k in granted if mine.demand.clash(self.reserved[k].demand)), None)

    def keeper(self, key: str, turn: Turn, demand: Demand) -> Keeper | None:
        """Who keeps this task back: a holder, or else the first one before it in line; None if nobody does."""
        keeper = _first(demand, ((other, held) for other, held in self.held.items() if other != key))
        if keeper is not None:
            return keeper
        for other, waiter in self.line.before(turn):
            found = demand.clash(waiter.demand) if other != key else None
            if found is not None and not self._waits_for(self.parents if demand.child else self.idle, waiter.demand):
                return Keeper(other, *found, holds=False)
        return None

    def _waits_for(self, holders: Set[str], demand: Demand) -> bool:
        """Whether one of these holds some of this."""
        found = (self.held.get(task_key) for task_key in holders)
        return any(held is not None and held.clash(demand) is not None for held in found)


def _first(demand: Demand, others: Iterable[tuple[str, Demand | None]]) -> Keeper | None:
    """The first of these holders that conflicts."""
    for other, held in others:
        if held is None:
            return Keeper(other, (demand.write or demand.read)[0], "", holds=True)
        found = demand.clash(held)
        if found is not None:
            return Keeper(other, *found, holds=True)
    return None
