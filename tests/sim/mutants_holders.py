"""Locks of tasks, broken: who holds, what two patterns have in common, and who goes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spoold.master import stages
from spoold.master.listing import task_metadata
from spoold.master.state.leader_state import Desk
from spoold.protocol.lifecycle import State
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions
from spoold.rules.gates.lock_holders import Demand, Line, Turn, Waiter
from spoold.rules.gates.registry import conditions_of
from spoold.rules.scheduling.backlog import Locking
from tests.sim.mutation import Mutations, Swap

holders = Mutations(world="locks")


@holders.add("locks", "A task that is ready holds nothing before it is claimed.")
def only_claims_hold() -> list[Swap]:
    known = stages._known

    def claimed(desk: Desk) -> Iterator[tuple[str, Demand]]:
        for task_key, demand in known(desk):
            place = desk.view.where.get(task_key)
            if place is not None and place.state is State.CLAIMED:
                yield task_key, demand

    def nothing(self: Locking, file: str, groups: object) -> None:
        return

    return [(stages, "_known", claimed), (Locking, "choose", nothing)]


@holders.add("locks", "A new leader gives locks away though it has not read what the claims lock.")
def what_is_not_read_holds_nothing() -> list[Swap]:
    def nothing(task: Task) -> Conditions:
        return replace(conditions_of(task), more=())

    return [(task_metadata, "conditions_of", nothing)]


@holders.add("locks", "Tasks that read the same as another writes may run beside it.")
def readers_beside_writers() -> list[Swap]:
    clash = Demand.clash

    def writes_alone(self: Demand, other: Demand) -> tuple[str, str] | None:
        return clash(Demand(self.write), Demand(other.write))

    return [(Demand, "clash", writes_alone)]


@holders.add("liveness", "No task in line keeps others back, so readers without end pass the writer.")
def nobody_stands_in_line() -> list[Swap]:
    def nobody(self: Line, turn: Turn) -> Iterator[tuple[str, Waiter]]:
        yield from ()

    return [(Line, "before", nobody)]


@holders.add("liveness", "Who waited for a task in line is not asked about again when that one is gone.")
def nobody_is_called() -> list[Swap]:
    def never(self: Locking, keeper: str) -> None:
        return

    return [(Locking, "_call", never)]
