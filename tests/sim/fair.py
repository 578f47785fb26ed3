"""The world `fair`: batches that share one unit of a limit, on machines that crash, under leaders that come and go.

Law: while a batch has a task that nothing else holds, few tasks of others go to ready/ before one of its own, however
many leaders there are meanwhile.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import TaskName, key, parse_task
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.limited import KNOWN_S
from tests.sim.programs import Programs
from tests.sim.workload import SETTINGS, Client

SHARES, TASKS = 5, 5
OF_SHARES = (
    SETTINGS
    + b"""
[limits.one]
max = 1
[fair]
by = "batch"
"""
)
# So often a share is passed at most: in two rounds by each other one, and by what a leader lets go before it knows.
PASSES = 2 * (SHARES - 1) + 3
# How long a task takes (s): few start under one leader.
TAKES_S = 0.7


def share_in(task_id: str) -> str:
    """The batch of a task, by its id."""
    return task_id.partition("-")[0]


class FairClient(Client):
    """Submits batches, one after the other: the first are older, and would go first while they have tasks."""

    def live(self) -> None:
        """Submit everything."""
        for number in range(SHARES):
            name = f"share{number}"
            self._submit([self._of(name, n) for n in range(TASKS)])
        self.done = True

    def _of(self, name: str, number: int) -> dict[str, Any]:
        task = {"id": f"{name}-{number}", "type": "wide", "command": ["work"], "dependencies": [], "max_retries": 5}
        return {**task, "batch": name, "uses": {"one": 1}}


class FairPrograms(Programs):
    """All tasks take equally long."""

    def _lasts_s(self, task: str, key: str) -> float:
        return TAKES_S if task.startswith("share") and not self._missed(task) else super()._lasts_s(task, key)


@dataclass(slots=True)
class FairLaws(Laws):
    """The law of turns, besides all others. waits_since: of the tasks that nothing but the limit holds; passed: how
    many went before each share since it last had its turn.
    """

    waits_since: dict[str, tuple[TaskName, float]] = field(default_factory=dict)
    passed: Counter[str] = field(default_factory=Counter)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        name = parse_task(dst.rpartition("/")[2])
        if name is None or not name.id.startswith("share"):
            return
        if dst.startswith("waiting/") and not name.delay_ms:
            self.waits_since[key(name.id)] = (name, self.scheduler.now)
            return
        self.waits_since.pop(key(name.id), None)
        if dst.startswith("ready/") and key(name.id) not in self.conduct.strangers and not self.conduct.amazed:
            self._goes(name)

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        self.waits_since.clear()
        self.passed.clear()

    def _goes(self, name: TaskName) -> None:
        now = self.scheduler.now
        ripe = {share_in(one.id) for one, since in self.waits_since.values() if now - since > KNOWN_S}
        for share in ripe - {share_in(name.id)}:
            self.passed[share] += 1
            if self.passed[share] > PASSES:
                raise Broken(
                    f"fair: {name.id} goes before all of {share}, as {PASSES} others have since its last turn"
                )
        for share in [share for share in self.passed if share not in ripe]:
            del self.passed[share]
        self.passed.pop(share_in(name.id), None)
