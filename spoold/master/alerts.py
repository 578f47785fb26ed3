"""The leader's alerts: judged when it makes a snapshot, published in it, then told.

Law: what stands is in the snapshot before anything tells of it, and a new leader goes on from the last one: so a rise
is told once, wherever a leader dies. An alert holds nothing up: what cannot be told now is told with a later
snapshot. May touch: drops in pending/, and snapshots of leaders before.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from spoold.master import outlook
from spoold.master.desk import Desk
from spoold.protocol import codec, layout
from spoold.protocol.drop import task_drop
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lanes import parse_lane
from spoold.protocol.snapshot import Alert, Snapshot
from spoold.rules.alerts.board import Board, Changes, notice, task_id
from spoold.rules.alerts.measures import Figures, Space, readings, unsure
from spoold.rules.cluster.nodes import ASLEEP
from spoold.rules.scheduling.matching import unfit
from spoold.rules.scheduling.resources import limits_in
from spoold.store import absence, snapshots
from spoold.store.regular import regular

log = logging.getLogger("spoold")

# A task that could not be dropped is tried again after this long (s).
AGAIN_S = 10.0


def left_behind(desk: Desk) -> Snapshot | None:
    """Return the newest snapshot of the leaders before; an older one only where a newer one is damaged or gone.

    Errors: OSError, also where the newest cannot be read just now: what stands in it would rise again.
    """
    for name in snapshots.list_snapshots(desk.store.fs):
        path = layout.join(layout.STATUS, name.encode())
        try:
            with desk.faults.reading("snapshot", path):
                with desk.reading(path), regular(path):
                    data = absence.read(desk.store.fs, path)
                if data is not None:
                    return snapshots.load(data, path)
        except BadFile:
            continue
        except OSError as error:
            desk.tell(path, error)
    return None


class Alerts:
    """The alerts of one leader in one epoch. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._board = Board()
        self._news = Changes()
        self._again_at = 0.0
        self._running: frozenset[tuple[str, int]] = frozenset()
        self._ended, self._started = -1, False
        self._still_since: float | None = None

    def begin(self, alerts: tuple[Alert, ...]) -> None:
        """Go on where the leader before left off."""
        self._board.begin(alerts)

    def judge(
        self, desk: Desk, picture: Snapshot, beats: Mapping[str, Heartbeat], dead: Collection[str]
    ) -> tuple[Alert, ...]:
        """Return the alerts that stand. picture: all else of the snapshot; beats: the last ones that were read."""
        now, by = desk.step.now.monotonic, desk.store.settings.alerts
        desk.health.outcomes.watch(now)
        figures = self._figures(desk, picture, beats, dead)
        found = readings(figures, by)
        changes = self._board.look(found, now, picture.generated_at, unsure=unsure(figures), dead_s=by.dead_s)
        self._news.raised += changes.raised
        self._news.cleared += changes.cleared
        return self._board.standing

    def tell(self, desk: Desk) -> None:
        """Note in the journal what has changed, and drop the tasks that tell of alerts. Errors: ShutOut."""
        for alert in self._news.raised:
            desk.journal.note("ALERT_RAISED", **alert.model_dump(exclude={"task"}))
        for alert in self._news.cleared:
            desk.journal.note("ALERT_CLEARED", name=alert.name, subject=alert.subject, since=alert.since)
        self._news = Changes()
        kind, now = desk.store.settings.alerts.kind, desk.step.now.monotonic
        if kind is None or now < self._again_at:
            return
        for alert in self._board.standing:
            if not alert.task and not self._drop(desk, alert, kind):
                self._again_at = now + AGAIN_S
                return

    def _drop(self, desk: Desk, alert: Alert, kind: str) -> bool:
        """Drop the task that tells of an alert, unless it is there; False if that has to wait. Errors: ShutOut."""
        task, store = task_id(alert), desk.store
        if not desk.view.known(task):
            path = layout.join(layout.PENDING, task_drop(desk.next_micros(), task, unique=False))
            try:
                staged = store.publish(path, codec.dump(notice(alert, kind)), durable=store.durable)
                if store.durable:
                    store.settle(layout.PENDING, {staged: path})
            except OSError as error:
                why = error.strerror or error
                log.warning("the task %s, which tells of an alert, cannot be dropped now: %s", task, why)
                return False
            desk.polling.hasten("pending")
            desk.step.change()
        self._board.told(alert, task)
        return True

    def _figures(
        self, desk: Desk, picture: Snapshot, beats: Mapping[str, Heartbeat], dead: Collection[str]
    ) -> Figures:
        now, store = desk.step.now.monotonic, desk.store
        workers = {
            node: beat
            for node in sorted(desk.view.beats)
            if (beat := beats.get(node)) is None or (beat.role == "worker" and beat.status != ASLEEP)
        }
        alive = {node: beat for node, beat in workers.items() if node not in dead}
        usage = desk.health.space(store, now)
        host = next((beat.host for node, beat in beats.items() if node == store.writer), None)
        others = sum(beat is not None and beat.host != host for beat in alive.values())
        # A request may name what is not there: nobody needs to be told of that.
        limits, shut = store.settings.limits, picture.gates.get("quota", {})
        known = desk.view.beats.keys() | desk.view.claimed.keys()
        return Figures(
            failures=desk.health.outcomes.now(now),
            workers=alive,
            dead={node: beats.get(node) for node in sorted(known & set(dead))},
            silent=desk.watch.dead(),
            dead_after_s=store.settings.heartbeat.dead_after_s,
            queue=picture.tasks.waiting + picture.tasks.ready,
            ready=picture.tasks.ready,
            still_s=self._still_s(desk, picture, [beat for beat in alive.values() if beat is not None]),
            gates={**picture.gates, "quota": {name: said for name, said in shut.items() if name in limits}},
            counting=desk.breakers.reading,
            followers=others + len(picture.master.standbys),
            space=Space(usage.total_bytes, usage.free_bytes, usage.free_inodes, store.basics),
        )

    def _still_s(self, desk: Desk, picture: Snapshot, workers: list[Heartbeat]) -> float | None:
        """Return for how long nothing has started though a task is ready and a worker for it has nothing to do."""
        now, counts = desk.step.now.monotonic, picture.tasks
        running = frozenset(
            (name.id, name.attempt) for names in desk.view.claimed.values() for name in names.values()
        )
        ended = counts.completed + counts.failed + counts.skipped
        moved = self._ended < 0 or not running <= self._running or ended > self._ended
        self._started = self._started or (moved and self._ended >= 0)
        self._running, self._ended = running, ended
        if not _may_start(desk, workers):
            self._still_since = None
            return 0.0
        if moved or self._still_since is None:
            self._still_since = now
        still_s = now - self._still_since
        # What a predecessor saw start is unknown: only what this leader sees, or a long time, says more.
        return still_s if self._started or still_s >= desk.store.settings.alerts.stuck_s else None


def _may_start(desk: Desk, workers: list[Heartbeat]) -> bool:
    """Whether a worker that has nothing to do can run a task that is ready; of the first few lanes, as `outlook`.

    A task with a limit of each worker does not count: its worker may wait for that, and only the worker knows.
    """
    limits = desk.store.settings.limits
    idle = [
        worker.capabilities
        for worker in outlook.awake(workers)
        if worker.capabilities and worker.slots and not desk.view.claimed.get(worker.node)
    ]
    ready = sorted(name for name, tasks in desk.view.ready.items() if tasks)[: outlook.LANES_JUDGED] if idle else []
    own = {name for name, limit in limits.items() if limit.per == "worker"}
    free = [name for name in ready if own.isdisjoint(limits_in(name, desk.store.settings) or ())]
    lanes = [lane for name in free if (lane := parse_lane(name)) is not None]
    return any(not unfit(lane, can) for lane in lanes for can in idle)
