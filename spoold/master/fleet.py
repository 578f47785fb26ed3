"""The workers that may take something new, as their heartbeats say, and which lanes none of them can serve.

Law: it goes by the heartbeats of the last report, so a worker that comes, goes or sleeps counts within a heartbeat of
the leader. A lane is compared with the workers once, until what one of them can run has changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import parse_lane
from spoold.protocol.names import key
from spoold.rules.cluster.nodes import ASLEEP
from spoold.rules.gates.worker import NAME
from spoold.rules.scheduling.instead import Lists, lists_of
from spoold.rules.scheduling.matching import unfit
from spoold.store.journal import Journal

# A task that has waited for others for so long (s) keeps nobody waiting but those that want what it holds.
LONG_S = 60.0


class Fleet:
    """What the workers that are awake can run. Before the first report nothing is known, and no lane is unserved.

    parents: keys of the tasks that run and wait for others, their slots lent, each since when (monotonic, s) that was
    first heard; asleep: the workers that said that they sleep. instead: by type, the types as which its tasks may run
    while a limit of it is closed, as the workers that are awake say.
    """

    def __init__(self) -> None:
        self.parents: dict[str, float] = {}
        self.asleep: frozenset[str] = frozenset()
        self.instead: Lists = {}
        self._able: list[Capabilities] = []
        self._unserved: dict[str, bool] = {}
        self._nobody = False
        self._told: set[str] = set()

    def see(self, workers: list[Heartbeat]) -> bool:
        """Note the workers that are awake; return whether what they can run has changed.

        A worker that does not say what it can run may run anything.
        """
        # What a worker leaves to others for a while comes and goes, and is no matter of what it can run.
        told = [worker.capabilities for worker in workers if worker.capabilities is not None]
        able = [can.model_copy(update={"shuns": {}}) for can in told] if len(told) == len(workers) else []
        self._nobody = not workers
        before, self.instead = self.instead, lists_of(told)
        changed = able != self._able or before != self.instead
        if changed:
            self._able = able
            self._unserved.clear()
        return changed

    def hear(self, workers: list[Heartbeat], now: float) -> None:
        """Note which tasks wait for others, and which workers sleep, as their heartbeats say. now: monotonic, s."""
        waiting = {key(run.id) for worker in workers for run in worker.running if run.lent}
        self.parents = {task_key: self.parents.get(task_key, now) for task_key in waiting}
        self.asleep = frozenset(worker.node for worker in workers if worker.status == ASLEEP)

    def idle(self, now: float) -> frozenset[str]:
        """Those that have waited for others for long."""
        return frozenset(task_key for task_key, since in self.parents.items() if now >= since + LONG_S)

    def unserved(self, lane: str) -> bool:
        """Whether workers are awake, and none of them can run a task of this lane. While none is awake no task waits
        for one: whichever comes first may be able to.
        """
        if not self._able:
            return False
        if lane not in self._unserved:
            demand = parse_lane(lane)
            self._unserved[lane] = demand is not None and all(unfit(demand, can) for can in self._able)
        return self._unserved[lane]

    def unservable(self, lane: str) -> bool:
        """Whether no worker that is awake can run a task of this lane, for people: also while none is awake."""
        return self.unserved(lane) or (self._nobody and parse_lane(lane) is not None)

    def tell(self, journal: Journal, stuck: Mapping[str, int]) -> dict[str, dict[str, dict[str, int]]]:
        """Return what the gate counts, for the snapshot: the lanes whose tasks wait for a worker. The journal notes
        which are new, and which no longer are. stuck: how many tasks stand in each lane that no worker can run.
        """
        held = {lane: {"tasks": tasks} for lane, tasks in stuck.items() if self.unserved(lane)}
        for lane in sorted(held.keys() - self._told):
            journal.note("LANE_CLOSED", lane=lane, tasks=stuck[lane])
        for lane in sorted(self._told - held.keys()):
            journal.note("LANE_OPENED", lane=lane)
        self._told = set(held)
        return {NAME: held} if held else {}
