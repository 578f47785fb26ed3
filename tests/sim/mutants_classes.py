"""Shares of the slots, broken one at a time."""

from __future__ import annotations

from spoold.rules.gates.resources import DEFAULT, Shares
from tests.sim.mutation import Mutations, Swap

classes = Mutations("classes")


@classes.add("a class has no more than its share", "A class may take every slot that is free.")
def share_ignored() -> list[Swap]:
    return [(Shares, "lets", lambda self, name, used: self.total > sum(used.values()))]


@classes.add("who borrows leaves what others want", "A class borrows what another class has reserved and wants.")
def borrowed_for_good() -> list[Swap]:
    lets = Shares.lets

    def greedy(self: Shares, name: str, used: dict[str, int]) -> bool:
        return lets(self, name, used) or (name in self.borrow and self.total > sum(used.values()))

    return [(Shares, "lets", greedy)]


@classes.add("tasks without a class have what is left", "Tasks without a class take the slots of the others, too.")
def default_has_everything() -> list[Swap]:
    of = Shares.of
    return [(Shares, "of", lambda self, name: self.total if name == DEFAULT else of(self, name))]
