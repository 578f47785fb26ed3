"""Counted resources: how much of each one task uses, how much there is, and which are short; the shares
of classes in the slots.

A resource is a name, with a prefix for its kind:

    type:NAME    `max_concurrent` of a type: each task of the type uses one unit
    limit:NAME   `max` of a limit: each task uses the units that it, or its type, says
    rate:NAME    `rate` of a limit: the same units, from the moment in which a task may start until the window is over
    class:NAME   the slots of a class: each task uses one, where the settings name classes
    quota:NAME   a limit whose quota was used up: while it is tried again, few tasks may start
    breaker:NAME a type whose breaker is open: nothing may start, and then one task, which tries

Those of a type, of a limit and of a class are in use while the task is ready or claimed. Those of a rate, of a
quota and of a breaker count starts: a task in ready/ may start at any moment, so it counts, and one that has left
ready/ has started.

Law: values only. Nothing is stored: usage is counted from the listings, so that no crash leaves it wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from spoold.protocol.amount import amount
from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.settings import Settings

# Shares of the slots that are alive, by class: what is reserved for each, and what it may borrow.
# Tasks that name no class are of the class `default`, whose share is what the others leave.
# Law: no class takes a slot that another has reserved and wants. A class that borrows gets what others leave idle;
# they get it back as tasks end, and no task is stopped for it.


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


# Units by the name of the resource; each is at least 1.
Uses = Mapping[str, int]
# The use of a task whose lane is not known: it may use any resource.
UNKNOWN = ""
TYPE, LIMIT, CLASS, RATE, QUOTA, BREAKER = "type:", "limit:", "class:", "rate:", "quota:", "breaker:"
_STARTS = (RATE, QUOTA, BREAKER)
_NOTHING: Uses = {}


@dataclass(frozen=True, slots=True)
class Capacity:
    """units: how many may be in use at once. whose and setting: its name for people, and the setting to change.

    most: the most units that one task can use; a task of unknown lane counts for so many.
    """

    units: int
    whose: str
    setting: str
    most: int = 1

    @property
    def raised(self) -> str:
        """What a person does to have more of it, also while nodes run."""
        section, _, name = self.setting.partition(" ")
        return f"raise it: `spool config set {section.strip('[]')}.{name} …`"


@dataclass(frozen=True, slots=True)
class KeptUnits:
    """Units that are kept back for tasks that come first, of which task is the id of the most urgent one."""

    units: int
    task: str


@dataclass(frozen=True, slots=True)
class Company:
    """Who else uses a resource of the task that is asked about. units: that tasks in ready/ hold, ready: their ids;
    ahead: how many tasks in waiting/ come before it; more: there are others, which were not counted.
    """

    units: int = 0
    ready: tuple[str, ...] = ()
    ahead: int = 0
    more: bool = False


ALONE = Company()


@dataclass(frozen=True, slots=True)
class Stock:
    """Every counted resource at one moment. A resource without a capacity has no limit.

    used: units seen in use; doubtful: units that may be in use as well. wanted: resources that an earlier task waits
    for: no later task may take what it waits for. shares: of the slots by class; None without classes. due: units
    that tasks want back which had lent them, and that are to be freed for them. kept: for tasks that come before the
    one that is asked about; the leader counts them as used. first: for `explain`, of what is wanted, the first of the
    tasks before that one which lack it; company: by resource, as far as it was looked for.
    """

    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    doubtful: Mapping[str, int] = field(default_factory=dict)
    wanted: Set[str] = frozenset()
    shares: Shares | None = None
    due: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, KeptUnits] = field(default_factory=dict)
    first: Mapping[str, KeptUnits] = field(default_factory=dict)
    company: Mapping[str, Company] = field(default_factory=dict)

    def short_of(self, uses: Uses, kinds: tuple[str, ...] = (TYPE, LIMIT)) -> str | None:
        """The first resource of these kinds with too little left for one more such task; None if there is enough."""
        return next((name for name in uses if name.startswith(kinds) and self._is_short(name, uses[name])), None)

    def freeable(self, uses: Uses) -> set[str]:
        """The resources of which such a task has too little; none if an earlier task waits for one of them."""
        short = {name for name, units in uses.items() if self._is_short(name, units)}
        return set() if short & self.wanted else short

    def slots_used(self) -> dict[str, int]:
        """The slots in use, or perhaps in use, by class; '' for tasks of unknown lane."""
        found = {"": self.used.get(UNKNOWN, 0)}
        for units in (self.used, self.doubtful, {name: kept.units for name, kept in self.kept.items()}):
            for name, count in units.items():
                if name.startswith(CLASS):
                    found[name.removeprefix(CLASS)] = found.get(name.removeprefix(CLASS), 0) + count
        return found

    def lacking(self, uses: Uses) -> set[str]:
        """The resources that such a task waits for: too little is left of each, though it has enough in all."""
        counted = {name: units for name, units in uses.items() if name.startswith((TYPE, LIMIT, RATE))}
        return {n for n, units in counted.items() if self._is_short(n, units) and units <= self.capacity[n].units}

    def _is_short(self, name: str, units: int) -> bool:
        return name in self.capacity and (name in self.wanted or not self._has(name, units))

    def _has(self, name: str, units: int) -> bool:
        """Whether so many units are left of a resource that has a capacity."""
        taken = self.used.get(name, 0) + self.doubtful.get(name, 0)
        if (kept := self.kept.get(name)) is not None:
            taken += kept.units
        return taken + units <= self.capacity[name].units

    def before(self, name: str, units: int) -> KeptUnits | None:
        """The earlier task, and what it lacks, that alone keeps so many units of a resource from a later one."""
        return self.first.get(name) if name not in self.due and self._has(name, units) else None

    def idle(self, name: str) -> tuple[str, ...]:
        """The tasks in ready/ that have all that is in use of a resource; none if others have some of it."""
        others = self.company.get(name, ALONE)
        return others.ready if others.units >= self.used.get(name, 0) + self.doubtful.get(name, 0) > 0 else ()

    def line(self, name: str) -> str:
        """In words: how many tasks before this one in waiting/ use a resource; '' for none."""
        others = self.company.get(name, ALONE)
        least = "at least " if others.more else ""
        verb = "uses" if others.ahead == 1 else "use"
        return f"before it in waiting/: {least}{amount(others.ahead, 'task')} that {verb} it" if others.ahead else ""

    def tries(self, name: str, task: str) -> str:
        """In words: which task tries a resource again, or is to. task: its id."""
        if task in self.company.get(name, ALONE).ready:
            return f"task {task}, which stands ready, is to try it"
        return f"task {task} is trying"

    def told(self, name: str) -> str:
        """In words, behind what is in use of a resource: what is kept back; '' for nothing."""
        kept = self.kept.get(name)
        if kept is None:
            return ""
        return f"; for task {kept.task}, which comes first and still lacks something else, {kept.units} of it is kept"

    def over(self) -> dict[str, int]:
        """The resources of which ready tasks have to give units back, and how many: those seen in use beyond their
        capacity (units in doubt are not), and those that are due.
        """
        beyond = {name: self.used.get(name, 0) - there.units for name, there in self.capacity.items()}
        found = {name: max(beyond.get(name, 0), 0) + self.due.get(name, 0) for name in {*beyond, *self.due}}
        return {name: units for name, units in found.items() if units > 0}


class Resources:
    """The counted resources of one state of the settings: how much there is, and what each lane uses.

    limited: whether there are limits or breakers, so that starts count; rates: those of the whole pool, by the name
    of the limit.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.capacity = capacities(settings)
        self.limited = bool(settings.limits) or any(own.breaker is not None for own in settings.types.values())
        self.rates = {n: own.rate for n, own in settings.limits.items() if own.rate is not None and own.per == "pool"}
        self._uses: dict[str, Uses] = {}
        self._running: dict[str, Uses] = {}
        self._starts: dict[str, Uses] = {}
        self._shared: dict[str, frozenset[str]] = {}

    def uses(self, lane: str) -> Uses:
        """What a task of the lane uses while it is ready; '' for a task of unknown lane."""
        known = self._uses.get(lane)
        if known is None:
            known = self._uses[lane] = self._find(lane)
        return known

    def running(self, lane: str) -> Uses:
        """What a task of the lane goes on using once it has started."""
        known = self._running.get(lane)
        if known is None:
            uses = self.uses(lane)
            known = {name: units for name, units in uses.items() if not name.startswith(_STARTS)}
            self._running[lane] = known
        return known

    def shared(self, lane: str) -> Set[str]:
        """The resources of limits that the lane uses: tasks of other lanes may wait for them, too."""
        known = self._shared.get(lane)
        if known is None:
            known = frozenset(name for name in self.uses(lane) if name.startswith((LIMIT, RATE)))
            self._shared[lane] = known
        return known

    def starts(self, lane: str) -> Uses:
        """What counts of a task of the lane when it starts."""
        if not self.limited:
            return _NOTHING
        known = self._starts.get(lane)
        if known is None:
            uses = self.uses(lane)
            known = self._starts[lane] = {name: units for name, units in uses.items() if name.startswith(_STARTS)}
        return known

    def _find(self, lane: str) -> Uses:
        parsed = parse_lane(lane)
        if parsed is None:
            return {UNKNOWN: 1}
        found = {f"{TYPE}{parsed.type}": 1}
        if self.settings.of(parsed.type).breaker is not None:
            found[f"{BREAKER}{parsed.type}"] = 1
        if self.settings.classes:
            found[f"{CLASS}{class_used(parsed, self.settings)}"] = 1
        for name, units in limits_used(parsed, self.settings).items():
            own = self.settings.limits.get(name)
            if own is None:
                continue  # it was taken out of the settings, so it holds nothing
            if own.max is not None and own.per == "pool":
                found[f"{LIMIT}{name}"] = units
            if own.rate is not None and own.per == "pool":
                found[f"{RATE}{name}"] = units
            found[f"{QUOTA}{name}"] = 1
        return found


def limits_used(lane: Lane, settings: Settings) -> dict[str, int]:
    """The limits that a task of the lane uses, with its units: the task's own word counts before its type's."""
    return {**settings.of(lane.type).uses, **dict(lane.uses)}


def class_used(lane: Lane, settings: Settings) -> str:
    """The class whose slot a task of the lane takes: the task's own word counts before its type's. A class that the
    settings no longer name is none.
    """
    named = lane.bulkhead or settings.of(lane.type).bulkhead
    return named if named in settings.classes else DEFAULT


def shares_of(settings: Settings, total: int, wants: frozenset[str] = frozenset()) -> Shares | None:
    """The shares of so many slots; None where the settings name no class."""
    if not settings.classes:
        return None
    borrow = frozenset(name for name, own in settings.classes.items() if own.borrow)
    slots = {name: own.slots for name, own in settings.classes.items() if name != DEFAULT or own.slots}
    return Shares(total, slots, borrow, wants)


def limits_in(lane_name: str, settings: Settings) -> dict[str, int] | None:
    """As `limits_used`, by the name of the lane; None for none, and for a lane that is not known."""
    lane = parse_lane(lane_name)
    return None if lane is None else limits_used(lane, settings) or None


def kind_counted(name: str) -> str | None:
    """The type that a resource counts, '' for tasks of unknown type; None for a resource that counts no type."""
    if name == UNKNOWN:
        return ""
    return name.removeprefix(TYPE) if name.startswith(TYPE) else None


def capacities(settings: Settings) -> dict[str, Capacity]:
    """The capacity of every resource of the pool that the settings limit."""
    found = {
        f"{TYPE}{kind}": Capacity(own.max_concurrent, f"type {kind}", f"[types.{kind}] max_concurrent")
        for kind, own in settings.types.items()
        if own.max_concurrent is not None
    }
    for name, limit in settings.limits.items():
        if limit.per == "worker":
            continue
        if limit.max is not None:
            setting = f"[limits.{name}] max"
            found[f"{LIMIT}{name}"] = Capacity(limit.max, f"limit {name}", setting, most=limit.max)
        if limit.rate is not None:
            # A task of unknown lane has started already.
            setting = f"[limits.{name}] rate.count"
            found[f"{RATE}{name}"] = Capacity(limit.rate.count, f"limit {name}", setting, most=0)
    return found


def stock_seen(capacity: Mapping[str, Capacity], used: Mapping[str, int], doubtful: Mapping[str, int]) -> Stock:
    """The stock as a snapshot shows it: units in use, and units that may be, by the name of the resource."""
    unknown = used.get(UNKNOWN, 0)
    in_doubt = {name: doubtful.get(name, 0) + there.most * unknown for name, there in capacity.items()}
    return Stock(capacity, used, in_doubt)
