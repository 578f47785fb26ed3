"""Turns, broken one at a time."""

from __future__ import annotations

from spoold.rules.scheduling.fair_shares import Turns
from tests.sim.mutation import Mutations, Swap

fair = Mutations("fair")


@fair.add("each share has its turn", "A new leader does not know whose turn it was.")
def turns_are_forgotten() -> list[Swap]:
    return [(Turns, "restore", lambda self, seen: None)]


@fair.add("each share has its turn", "A start ends no turn.")
def no_turn_ends() -> list[Swap]:
    return [(Turns, "start", lambda self, share: None)]
