"""The rules broken that keep two attempts of one task from moving at once: what is frozen, and what may go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from spoold.rules.cluster.liveness import Absence
from spoold.runner.job import Job
from spoold.worker.attempts import starting
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.lease import Resuming
from spoold.worker.handlers.job_preparation import prepare
from spoold.worker.worker import Worker
from tests.sim.mutation import Mutations, Swap

frozen = Mutations(world="silent")


@frozen.add("never two active", "What is frozen goes on with the next beat, before anybody looks at its claim.")
def thawed_without_a_look() -> list[Swap]:
    beat = Worker._beat

    def anyway(self: Worker, now: float, *, within: bool = False) -> None:
        beat(self, now, within=within)
        for key in self.runner.frozen():
            self.runner.thaw(key, self._lease.until)

    return [(Worker, "_beat", anyway)]


@frozen.add("never two active", "What is frozen goes on when its claim is listed, and the claim keeps its name.")
def thawed_under_its_old_name() -> list[Swap]:
    def listed(self: Resuming, attempts: Iterable[Attempt]) -> int:
        for attempt in attempts:
            if not attempt.fenced and attempt.key in self._runner.frozen():
                self._runner.thaw(attempt.key, self._lease.until)
        return 0

    return [(Resuming, "resume", listed)]


@frozen.add("never two active", "A task goes on when its lease is over, whatever the worker's configuration says.")
def lease_over_and_nothing_frozen() -> list[Swap]:
    def never(*args: Any) -> Job:
        return replace(prepare(*args), lost_share="continue")

    return [(starting, "prepare", never)]


@frozen.add("patience", "Who is not back as soon as the leader, after a silence of the share, is dead.")
def nobody_is_on_the_way_back() -> list[Swap]:
    def never(self: Absence, begun: float) -> bool:
        return False

    return [(Absence, "returning", never)]
