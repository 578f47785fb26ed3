"""Units that waiting tasks lend, with one law broken at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spoold.master import stages
from spoold.master.state.limit_usage import Usage
from spoold.rules.gates.limit_gates import Regained, regained
from spoold.worker.attempts.lent_slots import Units
from tests.sim.mutation import Mutations, Swap

lenders = Mutations("lent")


@lenders.add("nobody goes on with what others may have", "A task goes on as soon as it wants to, unasked.")
def goes_on_unasked() -> list[Swap]:
    return [(Units, "has", lambda self, attempt: True)]


@lenders.add("who has waited is not overtaken", "Ready tasks take units first: they come back when nobody uses any.")
def wants_back_overtaken() -> list[Swap]:
    def at_last(asking: Iterable[tuple[str, Any]], stock: Any) -> Regained:
        return Regained() if any(stock.used.values()) else regained(asking, stock)

    return [(stages, "regained", at_last)]


@lenders.add("who has waited is not overtaken", "Ready tasks may take what one that has waited still lacks.")
def wanted_units_not_kept() -> list[Swap]:
    return [(Usage, "keep", lambda self, due, asked: None)]


@lenders.add("units", "A leader gives units back whatever is in use.")
def given_back_at_once() -> list[Swap]:
    def all_of_them(asking: Iterable[tuple[str, Any]], stock: Any) -> Regained:
        return Regained(tuple(key for key, _ in asking))

    return [(stages, "regained", all_of_them)]


@lenders.add("liveness", "Units that were lent never come back.")
def never_given_back() -> list[Swap]:
    return [(stages, "regained", lambda asking, stock: Regained())]
