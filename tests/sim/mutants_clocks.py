"""The law of clocks, broken: a node judges times of day by its own date."""

from __future__ import annotations

from spoold.store.pool_clock import CommonClock
from tests.sim.mutation import Mutations, Swap

clocks = Mutations()


@clocks.add("no single clock decides", "Every node judges deadline and not_before by its own date.")
def judged_by_own_clock() -> list[Swap]:
    def own(self: CommonClock) -> float:
        return self._clock.wall()

    return [(CommonClock, "wall", own)]


@clocks.add("no single clock decides", "A new leader judges before it has asked the server for its time.")
def judged_before_asking() -> list[Swap]:
    def nobody(self: CommonClock, store: object) -> None:
        self._due = float("inf")

    return [(CommonClock, "ask", nobody)]
