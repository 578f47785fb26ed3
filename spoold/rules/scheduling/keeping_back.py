"""What is kept back for a waiting task that has some of what it needs and lacks the rest.

A task that needs two scarce things would wait for ever behind tasks that need one each: whenever the one is free, the
other is in use. So what it has is kept for it until it has all: units of limits and types, a slot of its class, what
it reserves of budgets, its place in the line for locks.

Law: no task waits without end behind less urgent ones, or behind younger ones of its rank, for things that it needs
together. Something is kept only while all that the task lacks is held by active tasks that come later than it. So
nothing lies idle for a task that waits for time, for people or for its turn. Where those tasks wait for others
themselves, nothing is kept that tasks below others need; and nothing at all once they have waited for long, since
nobody knows for whom. So no two tasks wait for each other for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum

from spoold.protocol.lanes import kind_in
from spoold.protocol.name_parts import order_in
from spoold.protocol.names import key
from spoold.rules.gates import bulkhead, limit, locks
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.registry import books, judge_type
from spoold.rules.gates.verdicts import Pass, Verdict, Wait
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.entry import Entry
from spoold.rules.scheduling.moment import Now
from spoold.rules.scheduling.resources import CLASS, LIMIT, RATE, TYPE, Uses
from spoold.rules.scheduling.yielding import Standing, Way

# Where a task stands among others, by rank and order: what is smaller comes first.
Place = tuple[int, str]
_COUNTED = (TYPE, LIMIT, RATE)


@dataclass(slots=True)
class KeepingBack:
    """What is kept back in one step. used: takes the units that are kept; wanted: what no later task may take.

    uses: what a task of a lane uses. aside: the tasks behind holders, by file, each with its facts and that holder.
    awaited: what those lack for which something is kept: resources, holders, gates. One task waits for each.
    latest: of the active tasks, by resource, the place of the one that comes last.
    """

    backlog: Backlog
    now: Now
    used: Counter[str]
    wanted: set[str]
    uses: Callable[[str], Uses]
    way: Way
    _aside: dict[str, tuple[Entry, TypeFacts, str]] = field(default_factory=dict)
    _awaited: set[str] = field(default_factory=set)
    _booked: list[tuple[Entry, TypeFacts]] = field(default_factory=list)
    _gathered: bool = False
    _active: dict[str, Standing] = field(default_factory=dict)
    _latest: dict[str, Place] = field(default_factory=dict)

    def behind(self, facts: Mapping[str, TypeFacts]) -> Iterable[str]:
        """The files of the tasks in line that are not asked about, since a holder keeps them back. facts: by lane."""
        for task_key, lane, keeper in self.backlog.locks.behind():
            entry = self.backlog.get(task_key)
            if entry is not None and lane in facts and _has_more(entry, facts[lane], set()):
                self._aside[entry.file] = entry, facts[lane], keeper
        return self._aside

    def go_on(self, file: str) -> None:
        """Weigh one of those, when it would be its turn."""
        entry, facts, keeper = self._aside[file]
        self.weigh(entry, entry.rank, facts, judge_type(kind_in(entry.lane), facts), keeper)

    def weigh(self, entry: Entry, rank: int, facts: TypeFacts, said: Verdict, keeper: str = "") -> None:
        """Keep back what a task has, if all that it lacks comes from later ones.

        rank: with which it goes; said: by the gates of its type; keeper: the holder of its locks behind which it is
        set aside.
        """
        lacks = _lacks(said, facts)
        if lacks is None or not entry.runnable or not _has_more(entry, facts, lacks):
            return
        place = rank, order_in(entry.file)
        if not all(self._comes(name, place, facts) for name in lacks):
            return
        waits = self._waits(entry, facts, keeper) if keeper not in self._awaited else None
        awaits = {*lacks, *(wait.behind or wait.gate for wait in waits or ())}
        if waits is None or not awaits or not awaits.isdisjoint(self.wanted | self._awaited):
            return
        sources = {self._source(entry, wait, place) for wait in waits}
        if _Source.NONE in sources:
            return
        self._awaited |= awaits
        self.wanted |= {name for name in lacks if not name.startswith(CLASS)}
        self.backlog.locks.stand(entry.lane, entry.groups, entry.file)
        self._keep(entry, facts, lacks, self._of_children() if _Source.WAITS in sources else None)

    def settle(self) -> None:
        """End the step: each for which something is kept is weighed anew in the next one."""
        for entry, facts in self._booked:
            self.backlog.let_go(entry, facts, self.now)

    def _keep(self, entry: Entry, facts: TypeFacts, lacks: set[str], needed: Set[str] | None) -> None:
        """Count as used what the task does not lack. needed: what those may need that others wait for."""
        for name, units in facts.uses.items():
            if name not in lacks and name not in (needed or ()) and _is_scarce(name, facts):
                self.used[name] += units
                self.way.kept.setdefault(name, []).append((entry.file, units))
        if not needed:
            self.backlog.keep(entry, facts, self.now)
            self._booked.append((entry, facts))

    def _of_children(self) -> Set[str]:
        """The resources that waiting tasks use which other tasks submitted."""
        return {name for lane in self.backlog.of_children() for name in self.uses(lane)}

    def _comes(self, name: str, place: Place, facts: TypeFacts) -> bool:
        """Whether a later task has some of a resource that is short. One that waits for others has lent it."""
        self._gather()
        shares = facts.stock.shares
        if name.startswith(CLASS) and shares is not None and shares.borrows(name.removeprefix(CLASS)):
            return any(there > place for each, there in self._latest.items() if each.startswith(CLASS))
        return self._latest.get(name, place) > place

    def _waits(self, entry: Entry, facts: TypeFacts, keeper: str) -> list[Wait] | None:
        """What the task's own gates keep from it; None if it may never run."""
        if not entry.groups:
            return []
        self._gather()
        waits = self.backlog.waits(entry, facts, self.now, passed=locks.NAME if keeper else "")
        return waits if waits is None or not keeper else [*waits, Wait(locks.NAME, "", behind=keeper)]

    def _source(self, entry: Entry, wait: Wait, place: Place) -> _Source:
        """Who has what a gate keeps from the task."""
        if wait.behind:  # no active one, where that task stands in line itself
            holders = [one for one in [self._active.get(wait.behind)] if one is not None]
        else:
            holders = [one for one in self._active.values() if self.backlog.holds(entry, wait.gate, one, self.now)]
            mine = Standing(entry.name, entry.lane, entry.conditions)
            if not holders and self.backlog.holds(entry, wait.gate, mine, self.now):
                return _Source.ENDS  # the records of those that had it were not read yet
        later = {one.waits for one in holders if _place(one) > place and not one.idle}
        return _Source.ENDS if False in later else _Source.WAITS if later else _Source.NONE

    def _gather(self) -> None:
        """Look at the active tasks, once a step, and only if it matters."""
        if self._gathered:
            return
        self._gathered = True
        self._active = {key(one.task.id): one for one in (*self.way.ready(), *self.way.running())}
        for one in self._active.values():
            for name in self.uses(one.lane) if not one.waits and not one.idle else ():
                self._latest[name] = max(self._latest.get(name, _place(one)), _place(one))


class _Source(Enum):
    """Who has what a task lacks: later tasks that end by themselves, or only such as wait for others; or nobody."""

    ENDS = "ends"
    WAITS = "waits"
    NONE = "none"


def _place(one: Standing) -> Place:
    return one.task.rank, one.task.order


def _has_more(entry: Entry, facts: TypeFacts, lacks: set[str]) -> bool:
    """Whether the task needs anything else that others may take; what it lacks of budgets they may, too."""
    if any(lacks or (name != locks.NAME and books(name)) for name, _ in entry.groups):
        return True
    return any(_is_scarce(name, facts) for name in facts.uses if name not in lacks)


def _is_scarce(name: str, facts: TypeFacts) -> bool:
    """Whether it may be kept: there is so much of it, and it is no turn to try something."""
    if name.startswith(CLASS):
        return facts.stock.shares is not None
    return name in facts.stock.capacity and name.startswith(_COUNTED)


def _lacks(said: Verdict, facts: TypeFacts) -> set[str] | None:
    """The resources of which a task of the lane has too little; None if it waits for anything else."""
    if isinstance(said, Pass):
        return set()
    if not isinstance(said, Wait) or said.gate not in (limit.GATE.name, bulkhead.GATE.name):
        return None
    short = {name for name, units in facts.uses.items() if facts.stock.short_of({name: units}, _COUNTED)}
    if short != facts.stock.lacking(facts.uses) or any(name.startswith(RATE) for name in short):
        return None  # it wants more than there is; or time brings it
    if not isinstance(bulkhead.judge("", facts), Pass):
        short |= {name for name in facts.uses if name.startswith(CLASS)}
    return short
