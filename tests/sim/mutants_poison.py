"""The law that a fault belongs to its cause, broken one containment at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from spoold.master.intake.drops import Drops
from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import Place
from spoold.protocol.names import TaskName
from spoold.store.contained_faults import Handling
from spoold.store.step_timing import Slice
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.starting import Starting
from tests.sim.mutation import Mutations, Swap

poisoned = Mutations(world="poison")
LAW = "a fault belongs to its cause"


@poisoned.add(LAW, "No fault is contained: one file ends a node, and the next, for ever.")
def nothing_contained() -> list[Swap]:
    def passed(self: Handling, kind: Any, error: Any, trace: Any) -> bool:
        return False

    return [(Handling, "__exit__", passed)]


@poisoned.add(LAW, "The leader does not contain the fault of a single task: its stage rests instead.")
def task_not_contained() -> list[Swap]:
    def handled(self: Desk, kind: str, place: Place, name: TaskName, handle: Callable[[], Any]) -> Any:
        return handle()

    return [(Desk, "contained", handled)]


@poisoned.add(LAW, "The leader does not contain the fault of a single drop: all drops rest instead.")
def drop_not_contained() -> list[Swap]:
    return [(Drops, "_judge_safely", Drops._judge)]


@poisoned.add(LAW, "A worker does not contain the fault of a task that it starts.")
def start_not_contained() -> list[Swap]:
    def start(
        self: Starting, name: TaskName, kinds: Collection[str], time: Slice, *, idle: bool, here: Collection[Attempt]
    ) -> Attempt | None:
        return self._start(name, kinds, time, idle, here)

    return [(Starting, "start", start)]
