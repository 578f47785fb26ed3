"""Urgency, broken one at a time."""

from __future__ import annotations

from spoold.rules.scheduling import promotion
from spoold.rules.scheduling.promotion import _Count
from spoold.rules.scheduling.queues import Way
from spoold.rules.workers.slots import Kept
from tests.sim.mutation import Mutations, Swap

urgent = Mutations("urgent")


@urgent.add("nobody waits behind what cannot move", "A ready task keeps what it holds, whoever needs it.")
def nobody_makes_way() -> list[Swap]:
    return [(Way, "clear", lambda self, rank, verdict, *_: verdict)]


@urgent.add("nobody waits behind what cannot move", "A ready task keeps its locks, and gives only units back.")
def locks_are_kept() -> list[Swap]:
    return [(_Count, "_clear", lambda self, facts, rank, entry, verdict: verdict)]


@urgent.add("no task waits without end behind less urgent ones", "A worker keeps no room for what it has none for.")
def no_room_is_kept() -> list[Swap]:
    return [(Kept, "lets", lambda self, name, needs: True)]


@urgent.add("what a task needs together is kept for it", "Nothing is kept back for a task that lacks something else.")
def nothing_is_kept_back() -> list[Swap]:
    return [(promotion.KeepingBack, "weigh", lambda self, entry, rank, facts, said, keeper="": None)]


@urgent.add("what a task needs together is kept for it", "Locks and budgets are kept back, and no units.")
def no_units_are_kept_back() -> list[Swap]:
    return [(promotion, "_is_scarce", lambda name, facts: False)]
