"""The pool besides its tasks: the available workers, the room on the share, and how attempts ended.

Law: it goes by the heartbeats of the last report, so a worker that comes, goes or sleeps counts within a heartbeat of
the leader. A lane is compared with the workers once, until what one of them can run has changed. The share is asked
for its room once in ROOM_EVERY_S at most. While it is full no drop is admitted. May touch: the share's free room.
"""

from __future__ import annotations

from collections.abc import Mapping

from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import kind_in, parse_lane
from spoold.protocol.names import key
from spoold.protocol.settings import AlertSettings
from spoold.rules.alerts import Outcomes
from spoold.rules.cluster.node_status import ASLEEP
from spoold.rules.gates.limit_gates import WORKER
from spoold.rules.scheduling.fallback_types import Lists, lists_of
from spoold.rules.share import free_space
from spoold.rules.workers.matching import unfit
from spoold.store.journal import Journal
from spoold.store.store import Store
from spoold.system.filesystem import Usage

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
        return {WORKER: held} if held else {}


# What alerts go by and the listings do not show by themselves: the room on the share, and how attempts ended.


# How often (s) the share is asked for its room: a round trip, where it is on a server.
ROOM_EVERY_S = 1.0


def counts_for_alerts(lane: str | None, by: AlertSettings) -> bool:
    """Return whether attempts of tasks of this lane count: those that tell of alerts do not, or one that fails would
    raise the next alert."""
    return by.kind is None or lane is None or kind_in(lane) != by.kind


class Health:
    """The health of a spool as one leader sees it. Times are monotonic, in seconds.

    outcomes: of the attempts that ended; shortage: why drops are not admitted, None if they are, as far as that was
    asked.
    """

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self.shortage: str | None = None
        self._usage: Usage | None = None
        self._asked_at = 0.0

    def space(self, store: Store, now: float) -> Usage:
        """Return the room on the share, as it was a second ago at the earliest. Errors: OSError."""
        if self._usage is None or now - self._asked_at >= ROOM_EVERY_S:
            self._usage, self._asked_at = store.fs.usage(), now
        return self._usage

    def admits(self, store: Store, now: float) -> bool:
        """Return whether there is room for new tasks. Errors: OSError."""
        usage = self.space(store, now)
        found = free_space.room(usage.total_bytes, usage.free_bytes, usage.free_inodes, store.basics)
        self.shortage = f"{found.value}: no drop is admitted; {found.mend}" if found.full else None
        return not self.closed

    @property
    def closed(self) -> bool:
        """Whether drops are not admitted, as far as that was asked."""
        return self.shortage is not None

    def failed(self, task_key: str, lane: str | None, by: AlertSettings, now: float, *, ran: bool) -> None:
        """Note that the leader failed a task. ran: it was an attempt that ended so, and not a task that waited."""
        self.outcomes.ended(now, task_key, failed=True if ran and counts_for_alerts(lane, by) else None)

    def next_due(self) -> float | None:
        """When (monotonic, s) to ask again whether drops are admitted; None while they are."""
        return self._asked_at + ROOM_EVERY_S if self.closed else None

    def warnings(self, store: Store, now: float) -> list[str]:
        """Return the warnings about the room on the share. Errors: OSError."""
        usage = self.space(store, now)
        found = free_space.warnings(usage.total_bytes, usage.free_bytes, usage.free_inodes, store.basics)
        return [free_space.READ_ONLY, *found] if usage.read_only else found
