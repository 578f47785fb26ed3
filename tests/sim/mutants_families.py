"""The laws of lent slots, broken on purpose."""

from __future__ import annotations

from typing import Any

from spoold.worker.attempts import lent_slots
from spoold.worker.attempts.lent_slots import Lending
from tests.sim.mutation import Mutations, Swap

families = Mutations("children")


@families.add("slots", "A task that asks for its slot has it at once, whoever has a slot meanwhile.")
def slot_taken_back_at_once() -> list[Swap]:
    def all_of_them(attempts: Any, can: Any, slots: int) -> list[str]:
        return [held.key for held in attempts if held.lent and held.asks]

    return [(lent_slots, "given_back", all_of_them)]


@families.add("liveness", "A slot that was lent never comes back.")
def slot_never_given_back() -> list[Swap]:
    return [(lent_slots, "given_back", lambda attempts, can, slots: [])]


@families.add("liveness", "A task that waits keeps its slot.")
def nothing_is_lent() -> list[Swap]:
    return [(Lending, "look", lambda self, attempts, can: False)]
