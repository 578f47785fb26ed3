"""How much of each counted resource is in use: the figure behind limits. See `rules.scheduling.resources`.

Law: counted anew from the listings in every step, so that no crash leaves a count wrong. Moves of the same step are
counted as they are made. Units that may be in use count as used: while the doubt lasts, nothing new begins in their
place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from spoold.protocol.settings import Settings
from spoold.rules.scheduling.resources import CLASS, UNKNOWN, Capacity, Resources, Stock, Uses


class Usage:
    """The units in use by name of the resource, as `stock` shows them at every moment of a step.

    slots: of the workers that are alive, as their heartbeats say. lent: units that claimed tasks have lent, which are
    not in use; asked: those of them that their tasks want back, and have not. kept: what the last step kept back for
    waiting tasks, as `Way.kept`.
    """

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()
        self._doubtful: Counter[str] = Counter()
        self.stock = Stock({}, self._used, self._doubtful)
        self._resources: Resources | None = None
        self.slots = 0
        self.lent: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.kept: Mapping[str, list[tuple[str, int]]] = {}

    def keeps(self, uses: Uses) -> bool:
        """Whether something is kept back of what such a task would take; of a class, whatever class it is."""
        return any(name in uses or name.startswith(CLASS) for name in self.kept)

    def see_slots(self, slots: int) -> None:
        """Note how many slots the workers have that are alive."""
        self.slots = slots

    def under(self, settings: Settings) -> Resources:
        """Return what lanes use under these settings; worked out once for as long as they stay the same."""
        if self._resources is None or self._resources.settings is not settings:
            self._resources = Resources(settings)
        return self._resources

    def begin(self, capacity: Mapping[str, Capacity], possible: Iterable[Uses]) -> None:
        """Count from nothing again. possible: the uses of tasks that are not seen but may be active all the same."""
        self._used.clear()
        self._doubtful.clear()
        self.lent.clear()
        self.asked.clear()
        self.stock = Stock(capacity, self._used, self._doubtful)
        for uses in possible:
            self._doubtful.update({name: units for name, units in uses.items() if name != UNKNOWN})
            self._doubt(uses.get(UNKNOWN, 0))

    def take(self, uses: Uses, count: int = 1) -> None:
        """Count so many more ready or claimed tasks with these uses."""
        for name, units in uses.items():
            self._used[name] += units * count
        self._doubt(uses.get(UNKNOWN, 0) * count)

    def give_back(self, uses: Uses) -> None:
        """Count one ready or claimed task with these uses less."""
        self.take(uses, -1)

    def lend(self, uses: Uses) -> None:
        """Note that a claimed task has lent what it uses."""
        self.lent.update(uses)

    def keep(self, due: Mapping[str, int], asked: Iterable[Uses]) -> None:
        """Let no ready task take what tasks want back that lent it. due: the units that they lack; asked: what they
        use.
        """
        self.stock = replace(self.stock, wanted=frozenset(due), due=due)
        for uses in asked:
            self.asked.update(uses)

    def in_use(self) -> Iterator[tuple[str, int]]:
        """Yield each resource that is seen in use, with its units, by name."""
        yield from sorted((name, units) for name, units in self._used.items() if units)

    def _doubt(self, count: int) -> None:
        """Count so many more tasks of unknown type, each of which may use the most of every resource."""
        if count:
            for name, there in self.stock.capacity.items():
                self._doubtful[name] += there.most * count
