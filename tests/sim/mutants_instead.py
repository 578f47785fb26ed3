"""Other types as which tasks may run, broken one at a time."""

from __future__ import annotations

from spoold.master.listing import task_metadata
from spoold.protocol.names import TaskName
from spoold.rules.scheduling import promotion
from spoold.worker.attempts.claims import Claims
from tests.sim.mutation import Mutations, Swap

instead = Mutations("instead")


@instead.add("only while a limit of its own is closed", "A task goes as another type whenever there is room.")
def goes_at_any_time() -> list[Swap]:
    return [(promotion, "is_closed", lambda kind, facts: True)]


@instead.add("limits hold over a change of leader", "A new leader counts each claim as of its own type.")
def claims_count_as_their_own_type() -> list[Swap]:
    return [(task_metadata, "_others_of", lambda desk, task: [])]


@instead.add("it runs as it was claimed", "A worker runs a claim as the type of its task, wherever it took it from.")
def runs_as_its_own_type() -> list[Swap]:
    def kinds(self: Claims, name: TaskName) -> frozenset[str]:
        return frozenset()

    return [(Claims, "kinds", kinds)]
