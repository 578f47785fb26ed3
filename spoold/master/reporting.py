"""What the leader tells people: the status snapshot, and warnings in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from spoold.master.desk import Desk
from spoold.master.leadership import Leadership
from spoold.master.placing import is_halted, kind_of
from spoold.master.rejecting import take_away
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat, MountFacts
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import BeatName, SnapshotName
from spoold.protocol.request import paused_by
from spoold.protocol.snapshot import Leadership as LeadershipPart
from spoold.protocol.snapshot import Rates, Snapshot, TaskCounts
from spoold.rules.matching import unfit
from spoold.rules.nodes import ASLEEP, DEAD, count_workers, node_of
from spoold.store import beats, snapshots
from spoold.store.mounting import mount_warnings, mounts_of
from spoold.system.errnos import Meaning, classify

# How often (s) while things change; on a share a snapshot costs seven round trips.
BUSY_EVERY_S, BUSY_REMOTE_S = 0.2, 1.0
RATES_OVER_S = 300.0
DEAD_SHOWN_S = 600.0
REJECTED_EVERY_S = 30.0
MOUNTS_EVERY_S = 30.0


class Reporting:
    """Publishes snapshots: soon after a change (it is stale then), else every interval, on a share every other."""

    def __init__(self, numbers: Iterator[int]) -> None:
        """numbers: those of snapshots; whoever begins an epoch anew goes on counting."""
        self._numbers = numbers
        self._published_at: float | None = None
        self.stale = True
        self._beats: dict[str, Heartbeat] = {}
        self._tried: dict[str, BeatName] = {}
        self._history: deque[tuple[float, int, int]] = deque()
        self._counted_at: float | None = None
        self._mounts: dict[str, MountFacts] = {}
        self._mounts_at = 0.0
        self._disapproved: list[str] = []

    def asleep(self, desk: Desk) -> set[str]:
        """The nodes whose newest beat, as listed in this step, was read and says that they sleep."""
        asleep = {node: beat.beat for node, beat in self._beats.items() if beat.status == ASLEEP}
        return {node for node, name in desk.view.beats.items() if asleep.get(node) == name.content}

    def step(self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile]) -> float:
        """Publish if it is time; returns when (monotonic, s) it will be. Errors: OSError."""
        now = desk.now.monotonic
        self.stale = self.stale or desk.busy
        quiet_s = desk.store.settings.heartbeat.interval_s * (2 if desk.looks.rationed else 1)
        every = (BUSY_REMOTE_S if desk.looks.rationed else BUSY_EVERY_S) if self.stale else quiet_s
        if self._published_at is not None and now < self._published_at + every:
            return self._published_at + every
        self._read_beats(desk)
        self._count_rejected(desk)
        self._judge_mounts(desk)
        snapshot = self._snapshot(desk, leadership, growing)
        if self._published_at is None:
            for name in snapshots.list_snapshots(desk.store.fs):  # of former leaders
                take_away(desk, layout.join(layout.STATUS, name.encode()))
        self._published_at, self.stale = now, False
        # A snapshot whose publishing failed may yet appear, so its name is never used again.
        try:
            snapshots.publish(desk.store, SnapshotName(desk.epoch, next(self._numbers)), snapshot)
        except OSError as error:
            # Moves need no room, a report does: on a full share the work goes on and the picture grows old.
            if classify(error) is not Meaning.FULL:
                raise
        return now + quiet_s

    def _read_beats(self, desk: Desk) -> None:
        for node, beat in desk.view.beats.items():
            known = self._beats.get(node)
            if (known is None or known.beat != beat.content) and self._tried.get(node) != beat:
                self._tried[node] = beat  # one that has gone meanwhile is not asked for again, but listed anew
                read = beats.read(desk.store.fs, beat)
                if read is not None:
                    self._beats[node] = read
                else:
                    desk.looks.hasten("beats")
        for gone in self._tried.keys() - desk.view.beats.keys():
            del self._tried[gone]
            self._beats.pop(gone, None)

    def _count_rejected(self, desk: Desk) -> None:
        """The leader counts its own rejections; people clear the directory, so it is counted anew at times."""
        now = desk.now.monotonic
        if self._counted_at is None or now - self._counted_at >= REJECTED_EVERY_S:
            self._counted_at = now
            desk.rejected = sum(not name.endswith(layout.REASON) for name in desk.store.fs.list(layout.REJECTED))

    def _judge_mounts(self, desk: Desk) -> None:
        """Nodes mount once and the doctor is asked rarely: its reports are read when nodes change, and at times."""
        now, mounts = desk.now.monotonic, mounts_of(self._beats)
        if mounts != self._mounts or now - self._mounts_at >= MOUNTS_EVERY_S:
            self._disapproved = mount_warnings(desk.store, mounts)
            self._mounts, self._mounts_at = mounts, now

    def _snapshot(self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile]) -> Snapshot:
        workers = [beat for _, beat in sorted(self._beats.items()) if beat.role == "worker"]
        nodes = tuple(node_of(beat, desk.view.claimed.get(beat.node, {}).values()) for beat in workers)
        counts = _counts(desk)
        return Snapshot(
            generated_at=desk.store.stamp(),
            spool_id=desk.store.marker.spool_id,
            master=LeadershipPart(
                leader=leadership.holder,
                epoch=desk.epoch,
                standbys=tuple(
                    n for n, b in sorted(self._beats.items()) if b.role == "master" and n != leadership.holder
                ),
            ),
            tasks=counts,
            workers=count_workers([*(node.state for node in nodes), *self._dead(desk)]),
            nodes=nodes,
            rates=self._rates(desk, counts),
            types=_types(desk),
            paused=tuple(sorted(paused_by(desk.view.requests))),
            halted=is_halted(desk),
            warnings=(*_warnings(desk, workers, growing), *self._disapproved),
        )

    @staticmethod
    def _dead(desk: Desk) -> list[str]:
        """One word for each worker that was reaped lately: gone from the listing, not from people's minds."""
        return [DEAD for at in desk.dead.values() if desk.now.monotonic - at < DEAD_SHOWN_S]

    def _rates(self, desk: Desk, counts: TaskCounts) -> Rates:
        now = desk.now.monotonic
        self._history.append((now, counts.completed, counts.failed))
        while now - self._history[0][0] > RATES_OVER_S:
            self._history.popleft()
        since, completed, failed = self._history[0]
        # Counted over at least a minute, so that one quick task does not promise a rate.
        minutes = max(now - since, 60.0) / 60
        done = max(0, counts.completed - completed) / minutes
        left = counts.pending + counts.waiting + counts.ready + counts.claimed
        return Rates(
            completed_per_min=round(done, 2),
            failed_per_min=round(max(0, counts.failed - failed) / minutes, 2),
            eta_s=round(left / done * 60, 1) if done and left else None,
        )


def _counts(desk: Desk) -> TaskCounts:
    archived = desk.view.archived.counts
    return TaskCounts(
        pending=len(desk.view.pending) + len(desk.batches) + len(desk.half),
        waiting=len(desk.backlog) + len(desk.view.returned),
        ready=sum(map(len, desk.view.ready.values())),
        claimed=sum(map(len, desk.view.claimed.values())),
        completed=len(desk.view.completed) + archived[State.COMPLETED],
        failed=len(desk.view.failed) + archived[State.FAILED],
        rejected=desk.rejected,
    )


def _types(desk: Desk) -> dict[str, dict[str, int]]:
    types: dict[str, dict[str, int]] = {}
    for lane, count in desk.backlog.per_lane().items():
        kind = types.setdefault(kind_of(lane), {"waiting": 0, "active": 0})
        kind["waiting"] += count
    for name, active in sorted(desk.active.items()):
        if active:
            types.setdefault(name, {"waiting": 0, "active": 0})["active"] += active
    return types


def _warnings(desk: Desk, workers: list[Heartbeat], growing: dict[str, BadFile]) -> list[str]:
    warnings = list(dict.fromkeys(desk.notices))
    warnings += desk.store.room_warnings()
    warnings += [f"pending/{drop}: {error.problem} {error.mend}" for drop, error in sorted(growing.items())[:5]]
    waiting = sorted({*desk.backlog.lanes(), *(lane for lane, tasks in desk.view.ready.items() if tasks)})
    awake = [worker for worker in workers if worker.status not in ("draining", ASLEEP)]
    able = [worker.capabilities for worker in awake if worker.capabilities]
    for name in waiting[:50]:
        lane = parse_lane(name)
        if lane is not None and all(unfit(lane, can) for can in able):
            why = f"none of {len(able)} workers can" if able else "no worker is there to"
            warnings.append(f"{why} run {name}; `spool explain ID` says what is missing")
    warnings += [f"{worker.node}: {note}" for worker in workers for note in worker.notes]
    return warnings
