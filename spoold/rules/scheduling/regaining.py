"""Who gets back the units that it lent while it waited: those that want theirs back come before every ready task.

Law: a task gets all of its units at one moment, or none. They are judged in a settled order, and no later one takes
what an earlier one still lacks, and no ready task does. One that finds nobody else at a resource always gets it back,
whatever the settings say by now: it has run before, and must not wait for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from spoold.rules.scheduling.resources import CLASS, LIMIT, TYPE, Stock, Uses


@dataclass(frozen=True, slots=True)
class Regained:
    """back: the keys of those that get their units now. wanted: by resource, the units that the others still lack:
    nothing else may take one, and so many are to be freed.
    """

    back: tuple[str, ...] = ()
    wanted: Mapping[str, int] = field(default_factory=dict)


def lends(uses: Uses, stock_names: Iterable[str]) -> bool:
    """Whether a task with these uses has units that others could use. stock_names: of resources with a capacity."""
    return any(name.startswith(CLASS) for name in uses) or not uses.keys().isdisjoint(stock_names)


def regained(asking: Iterable[tuple[str, Uses]], stock: Stock) -> Regained:
    """Judge those that ask, each with its key and its uses, in the order in which they come."""
    used, wanted, back = Counter(stock.used), Counter[str](), list[str]()
    now = replace(stock, used=used)
    for key, uses in asking:
        short = {name: lack for name in uses if (lack := _lack(now, name, uses[name], wanted))}
        wanted.update(short)
        if not short:
            back.append(key)
            used.update(uses)
    return Regained(tuple(back), wanted)


def told(uses: Uses, stock: Stock) -> Iterator[str]:
    """Yield, for a person, how many units of each resource such a task lends, and how many are in use."""
    for name, units in uses.items():
        used = stock.used.get(name, 0) + stock.doubtful.get(name, 0)
        if name.startswith(CLASS):
            yield f"a slot of class {name.removeprefix(CLASS)}, of which {used} are in use"
        elif (there := stock.capacity.get(name)) is not None and name.startswith((TYPE, LIMIT)):
            yield f"{units} of {there.whose}, with {used} of {there.setting} = {there.units} in use"


def _lack(stock: Stock, name: str, units: int, wanted: Mapping[str, int]) -> int:
    """How many units are missing; 0 for none."""
    if name in wanted:
        return units
    taken = stock.used.get(name, 0) + stock.doubtful.get(name, 0)
    if name.startswith(CLASS):
        return int(not _has_slot(stock, name.removeprefix(CLASS), taken))
    there = stock.capacity.get(name)
    return 0 if there is None or not taken else max(0, min(taken, taken + units - there.units))


def _has_slot(stock: Stock, name: str, taken: int) -> bool:
    shares = stock.shares
    return shares is None or taken < max(1, shares.of(name)) or shares.lets(name, stock.slots_used())
