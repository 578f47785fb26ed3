"""The leader's report to people: the status snapshot, and warnings in words.

Law: a snapshot is for people, and no node decides by it. Its name is never used twice, since one that failed to
appear may still come. On a full share the work goes on, and the snapshot grows old.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from spoold.master.report import forecast
from spoold.master.state.leader_state import Desk
from spoold.master.state.leadership import Leadership
from spoold.master.state.rejecting import take_away
from spoold.master.tasks.reaping import reported
from spoold.master.tasks.scheduler import is_halted
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat, MountFacts
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import BeatName, SnapshotName, key, key_in, parse_task, task_drop
from spoold.protocol.request import Verb
from spoold.protocol.snapshot import Alert, Snapshot, TaskCounts
from spoold.protocol.snapshot import Leadership as LeadershipPart
from spoold.rules.alerts import Board, Changes, Figures, Space, notice, readings, succeeded, task_id, unsure
from spoold.rules.attempts.attempt_costs import spent_by
from spoold.rules.attempts.durations import Estimates
from spoold.rules.cluster.node_status import ASLEEP, count_workers, left_warnings, node_of
from spoold.rules.cluster.pool_clock import warnings as clock_warnings
from spoold.rules.cluster.recent_minutes import RecentMinutes
from spoold.rules.cluster.throughput import Tally, Tempo
from spoold.rules.gates.lock_holders import LONG, turn_of
from spoold.rules.gates.resources import limits_in
from spoold.rules.scheduling.fair_shares import turns_seen
from spoold.rules.share.machine_identities import Twins
from spoold.rules.workers.matching import unfit
from spoold.store import control, existence, heartbeats, pool_clock, snapshots
from spoold.store.doctor_reports import mount_warnings, mounts_of
from spoold.store.existence import names_unless_blocked, regular
from spoold.store.own_heartbeat import provably_gone, runs_here
from spoold.store.path_conflicts import barrier, named, obstacles
from spoold.store.predecessors import Standstill
from spoold.system.errnos import Meaning, classify
from spoold.system.host import Host

log = logging.getLogger("spoold")

# How often (s) while things change; on a share a snapshot costs seven round trips.
BUSY_EVERY_S, BUSY_REMOTE_S = 0.2, 1.0
UNDONE_SHOWN_S = 600.0
GONE_EVERY_S = 1.0
REJECTED_EVERY_S = 30.0
MOUNTS_EVERY_S = 30.0
TREE_EVERY_S = 120.0
STRANGE_EVERY_S = 600.0
# A member may make any number of files that this node may not move, and every user reads the snapshot.
NOTICES_SHOWN = 20
UNDONE = (
    "the file server has undone {} moves that it had confirmed, as after a power cut; the tasks are moved again, and "
    "some may run twice"
)


class Reporting:
    """Publishes snapshots: soon after a change (it is stale then), else every interval, on a share every other."""

    def __init__(self, numbers: Iterator[int]) -> None:
        """numbers: of snapshots; a leader that begins an epoch anew goes on counting."""
        self._numbers = numbers
        self._published_at: float | None = None
        self._name = SnapshotName(0, 0)  # of the last one
        self.stale = True
        self._beats: dict[str, Heartbeat] = {}
        self._tried: dict[str, BeatName] = {}
        self._gone: dict[str, int] = {}
        self._gone_at: float | None = None
        self._standstill: Standstill | None = None
        self._tempo, self._tally, self._estimates = Tempo(), Tally(), Estimates()
        self._minutes, self._begun = RecentMinutes(), False
        self._counted_at: float | None = None
        self._mounts: dict[str, MountFacts] = {}
        self._mounts_at = 0.0
        self._disapproved: list[str] = []
        self._blocked: list[str] = []
        self._looked_at: float | None = None
        self._announced: frozenset[str] = frozenset()
        self._alerts = Alerts()
        self._alone_at: float | None = None  # when no snapshot was left but this leader's
        self._twins, self._twins_told = Twins(), set[str]()

    def asleep(self, desk: Desk) -> set[str]:
        """Return the nodes whose newest beat, as listed in this step, was read and says that they sleep."""
        asleep = {node: beat.beat for node, beat in self._beats.items() if beat.status == ASLEEP}
        return {node for node, name in desk.view.beats.items() if asleep.get(node) == name.content}

    def gone(self, desk: Desk, host: Host) -> set[str]:
        """Return the masters whose newest listed beat was read, and that are gone from this host.

        Looked up at most once a second, as of the beats that were listed: it asks the machine, never the share.
        """
        now, shown = desk.step.now.monotonic, desk.view.beats
        if desk.step.listed.beats and (self._gone_at is None or now - self._gone_at >= GONE_EVERY_S):
            others = [b for b in self._beats.values() if b.role == "master" and b.node != desk.store.writer]
            missing, self._gone_at = dict[str, int](), now
            self._standstill = self._standstill or Standstill(desk.store, host)
            for beat in others:
                with desk.faults.handling("host of node", beat.node):
                    if beat.node in shown and provably_gone(beat, host):
                        missing[beat.node] = shown[beat.node].beat
            self._gone = {node: self._beats[node].beat for node in self._standstill.gone(missing, now)}
        return {node for node, name in desk.view.beats.items() if self._gone.get(node) == name.content}

    def here(self, desk: Desk, host: Host) -> set[str]:
        """Return the nodes that a request calls gone, and that run on this host as of their last beat that was read.

        Who posted the request may be mistaken, or mean harm. It asks the machine, never the share.
        """
        found = set[str]()
        for node in reported(desk) & desk.view.beats.keys() & self._beats.keys():
            with desk.faults.handling("host of node", node):
                if runs_here(self._beats[node], host):
                    found.add(node)
        return found

    def refute(self, desk: Desk, gone: Collection[str]) -> None:
        """Name as twins the nodes that beat after their own host, or this one, was heard to say that they are gone.

        gone: the masters whose process is gone from this host.
        """
        refuted = desk.watch.refuted
        for node in refuted & {*gone}:
            self._twins.miss(node, desk.store.writer)
        wrong = [r for r in desk.view.requests if r.verb is Verb.REAP and r.target in refuted] if refuted else []
        for request in desk.some(wrong):
            self._twins.miss(request.target, request.unique)
            path = control.path(request)
            if take_away(desk, path):
                said = f"{path} said that {request.target} is gone, but it beats: the request was removed"
                desk.report.refuse(said, desk.step.now.monotonic)

    def announce(
        self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile], dead: Collection[str]
    ) -> None:
        """Publish at once which nodes have died. Errors: OSError.

        Taking back their claims can take long: an SMB server waits for the dead client to release each file.
        """
        new, self._announced = not self._announced.issuperset(dead), frozenset(dead)
        if new:
            self._publish(desk, leadership, growing)

    def step(self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile]) -> float:
        """Publish if it is time; return when (monotonic, s) it will be. Errors: OSError."""
        now = desk.step.now.monotonic
        new = not self._tried.keys() >= desk.view.beats.keys()
        if new or (desk.polling.rationed and desk.step.listed.beats):
            self._read_beats(desk)  # now: by the time of the next report they have other names
        if new:
            self._see_workers(desk, self._workers(), self._dead(desk))  # one may be the first for a lane
        self.stale = self.stale or desk.step.busy
        quiet_s = desk.store.settings.heartbeat.interval_s * (2 if desk.polling.rationed else 1)
        busy_s = BUSY_REMOTE_S * desk.polling.dear if desk.polling.rationed else BUSY_EVERY_S
        every = busy_s if self.stale else quiet_s
        if self._published_at is not None and now < self._published_at + every:
            return self._published_at + every
        self._publish(desk, leadership, growing)
        return now + quiet_s

    def _publish(self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile]) -> None:
        self._read_beats(desk)
        desk.store.common.agree(pool_clock.by_host(self._beats.values()).values())
        self._count_rejected(desk)
        self._judge_mounts(desk)
        self._look_at_tree(desk)
        picture = self._snapshot(desk, leadership, growing)
        alerts = self._alerts.judge(desk, picture, self._beats, self._announced)
        snapshot = picture.model_copy(update={"alerts": alerts})
        self._published_at, self.stale = desk.step.now.monotonic, False
        # A snapshot whose publishing failed may yet appear, so its name is never used again.
        self._name = SnapshotName(desk.epoch, next(self._numbers))
        try:
            snapshots.publish(desk.store, self._name, snapshot)
        except OSError as error:
            # Moves need no room, a report does: on a full share the work goes on and the snapshot grows old.
            if classify(error) is not Meaning.FULL and not isinstance(error, NotADirectoryError):
                raise
            return  # what no snapshot says is not told either
        self._clear_former(desk)
        self._alerts.tell(desk)

    def _begin(self, desk: Desk) -> None:
        """Go on from what the leader before had counted, before anything is counted. Errors: OSError."""
        if self._begun:
            return
        if (before := left_behind(desk)) is not None:
            now = desk.step.now
            self._estimates.begin(before.durations)
            self._alerts.begin(before.alerts)
            self._tempo.begin(now.monotonic, now.wall, before)
            self._tally.begin(now.monotonic, now.wall, before)
            desk.backlog.turns.restore(turns_seen(before.gates))
            self._minutes.begin(before.history, before.tasks.completed, before.tasks.failed, before.nodes)
        self._begun = True

    def _clear_former(self, desk: Desk) -> None:
        """Remove the snapshots of former leaders, once what they say of alerts stands in one of this leader. So also
        those that no leader wrote: under a higher name they would be read instead of this leader's, for ever.
        """
        now = desk.step.now.monotonic
        if self._alone_at is not None and now - self._alone_at < STRANGE_EVERY_S:
            return
        former = snapshots.list_snapshots(desk.store.fs)
        for name in desk.some([name for name in former if name.epoch != desk.epoch or name > self._name]):
            take_away(desk, layout.join(layout.STATUS, name.encode()))
        self._alone_at = None if desk.step.cut else now

    def _find_twins(self) -> list[str]:
        """Return the warnings about machines with one identity; each is logged once."""
        found = self._twins.warnings(self._beats.values())
        for warning in found:
            if warning not in self._twins_told:
                self._twins_told.add(warning)
                log.warning("%s", warning)
        return found

    def _read_beats(self, desk: Desk) -> None:
        self._begin(desk)
        self._twins.look({node: name.beat for node, name in desk.view.beats.items()}, desk.step.now.monotonic)
        for node, beat in desk.some([one for one in desk.view.beats.items() if self._is_news(*one)], "beats"):
            self._tried[node] = beat  # a beat that has gone meanwhile is not read again, but listed anew
            read = heartbeats.read(desk.store.fs, beat)
            if read is not None:
                self._beats[node] = read
                with desk.faults.handling("heartbeat to count", node):
                    self._hear(desk, node, read)
            else:
                desk.polling.hasten("beats")
        for gone in self._tried.keys() - desk.view.beats.keys():
            del self._tried[gone]
            self._beats.pop(gone, None)
            self._tally.forget(gone)
            self._minutes.forget(gone)
            self._estimates.forget(gone)
            desk.starts.hear(gone, ())

    def _is_news(self, node: str, beat: BeatName) -> bool:
        known = self._beats.get(node)
        return (known is None or known.beat != beat.content) and self._tried.get(node) != beat

    def _hear(self, desk: Desk, node: str, read: Heartbeat) -> None:
        now = desk.step.now
        new = self._tally.hear(now.monotonic, node, read.beat, read.endings)
        self._minutes.failures(now.wall, new)
        self._minutes.spent(now.wall, node, read.beat, read.spent)
        self._estimates.hear(node, read.durations)
        if desk.starts.hear(node, [(key(run.id), run.attempt) for run in read.running if run.served]):
            desk.step.change()  # one of them may be the one that tries a limit

    def _count_rejected(self, desk: Desk) -> None:
        """Count rejected drops anew at times: the leader counts its own, but people clear the directory."""
        now = desk.step.now.monotonic
        if self._counted_at is None or now - self._counted_at >= REJECTED_EVERY_S:
            self._counted_at = now
            names = names_unless_blocked(desk.store.fs, layout.REJECTED)
            desk.report.count_rejected(sum(not name.endswith(layout.REASON) for name in names))

    def _judge_mounts(self, desk: Desk) -> None:
        """Read the doctor's reports when nodes change, and at times: nodes mount once, and the doctor runs rarely."""
        now, mounts = desk.step.now.monotonic, mounts_of(self._beats)
        if mounts != self._mounts or now - self._mounts_at >= MOUNTS_EVERY_S:
            self._disapproved = mount_warnings(desk.store, mounts)
            self._mounts, self._mounts_at = mounts, now

    def _look_at_tree(self, desk: Desk) -> None:
        """Look for a link in the place of a directory: it stops work there, and not always with an error."""
        now = desk.step.now.monotonic
        if self._blocked or self._looked_at is None or now - self._looked_at >= TREE_EVERY_S:
            self._looked_at, self._blocked = now, obstacles(desk.store.fs)

    def _workers(self) -> list[Heartbeat]:
        return [beat for _, beat in sorted(self._beats.items()) if beat.role == "worker"]

    def _silent(self, desk: Desk) -> set[str]:
        return {*desk.watch.dead(), *self._gone}

    def _dead(self, desk: Desk) -> set[str]:
        """Return the workers that are dead: the last beat of one that cannot be reaped yet is no news."""
        return {beat.node for beat in self._workers() if beat.status != ASLEEP} & self._silent(desk)

    def _see_workers(self, desk: Desk, workers: list[Heartbeat], dead: Collection[str]) -> list[Heartbeat]:
        """Return the workers that may take something new, and let the gates know of them."""
        awake = forecast.awake([beat for beat in workers if beat.node not in dead])
        desk.usage.see_slots(sum(worker.slots for worker in awake))
        now = desk.step.now.monotonic
        desk.fleet.hear(workers, now)
        if desk.backlog.locks.see_parents(desk.fleet.parents.keys(), desk.fleet.idle(now)):
            desk.step.change()  # what stands behind others in line is judged anew
        if desk.fleet.see(awake):
            desk.step.change()  # what waits for a worker is judged anew
        return awake

    def _snapshot(self, desk: Desk, leadership: Leadership, growing: dict[str, BadFile]) -> Snapshot:
        workers, dead, silent = self._workers(), self._dead(desk), self._silent(desk)
        nodes = tuple(
            node_of(beat, desk.view.claimed.get(beat.node, {}).values(), dead=beat.node in dead) for beat in workers
        )
        counts, now = _counts(desk), desk.step.now.monotonic
        awake = self._see_workers(desk, workers, dead)
        stuck = forecast.unservable(desk)
        working = bool(counts.ready or counts.claimed)
        self._tally.ended(now, desk.report.endings)
        self._tally.rejected(now, desk.report.rejections)
        wall = desk.step.now.wall
        self._minutes.failures(wall, desk.report.endings)
        self._minutes.rejections(wall, desk.report.rejections)
        self._minutes.counted(wall, counts.completed, counts.failed)
        desk.report.counted()
        return Snapshot(
            generated_at=desk.store.stamp(),
            spool_id=desk.store.marker.spool_id,
            master=LeadershipPart(
                leader=leadership.holder,
                epoch=desk.epoch,
                standbys=tuple(
                    node
                    for node, beat in sorted(self._beats.items())
                    if beat.role == "master" and node != leadership.holder and node not in silent
                ),
            ),
            tasks=counts,
            workers=count_workers(node.state for node in nodes),
            nodes=nodes,
            rates=self._tempo.rates(
                now, counts.completed, counts.failed, forecast.left(desk, counts, awake, stuck), working=working
            ),
            recent=self._tally.recent(now),
            history=self._minutes.said(wall),
            spent=spent_by(workers),
            types=forecast.types(desk),
            durations=self._estimates.now(),
            gates={
                **forecast.gates(desk),
                **gates(desk, self._beats),
                **desk.fleet.tell(desk.journal, stuck),
            },
            paused=tuple(sorted(desk.paused)),
            halted=is_halted(desk),
            settings=desk.store.revisions.revision,
            warnings=(
                *left_warnings(workers),
                *_warnings(desk, growing),
                *forecast.warnings(workers, awake, stuck),
                *clock_warnings(pool_clock.by_host(self._beats.values())),
                *self._find_twins(),
                *self._blocked,
                *self._disapproved,
            ),
        )


def _counts(desk: Desk) -> TaskCounts:
    archived = desk.view.archived.counts
    skipped = sum(name.skipped for name in desk.view.failed.values())
    return TaskCounts(
        pending=len(desk.view.pending) + desk.door.open_drops(),
        waiting=len(desk.backlog) + len(desk.view.returned),
        ready=sum(map(len, desk.view.ready.values())),
        claimed=sum(map(len, desk.view.claimed.values())),
        completed=len(desk.view.completed) + archived[State.COMPLETED],
        failed=len(desk.view.failed) - skipped + archived[State.FAILED],
        skipped=skipped + archived[State.SKIPPED],
        rejected=desk.report.rejected,
    )


def _warnings(desk: Desk, growing: dict[str, BadFile]) -> list[str]:
    fs, blocked = desk.store.fs, sorted(desk.view.blocked)
    found = {path: said for path in blocked if (said := barrier(fs, path)) is not None}
    desk.view.blocked &= found.keys()
    notices = list(dict.fromkeys(desk.report.notices))
    if (more := len(notices) - NOTICES_SHOWN) > 0:
        notices[NOTICES_SHOWN:] = [f"warnings that are not shown here, and may be of the same kind: {more:,}"]
    warnings = list(dict.fromkeys((*notices, *named(desk.report.locked), *named(list(found.values())))))
    warnings += desk.health.warnings(desk.store, desk.step.now.monotonic)
    warnings += desk.view.misnamed.warnings()
    warnings += named(sorted(desk.report.wrong), "files in ready/ that are no tasks")
    warnings += named(desk.report.refusals(desk.step.now.monotonic), "requests that were refused")
    warnings += desk.missing.warnings(
        desk.step.now.monotonic - desk.store.settings.retention.failed_s, desk.view.known
    )
    warnings += named(list(desk.faults.notes), "inputs that spoold could not handle")
    warnings += desk.store.revisions.warnings[:NOTICES_SHOWN]
    if desk.step.now.monotonic - desk.report.undone_at < UNDONE_SHOWN_S:
        warnings.append(UNDONE.format(desk.report.undone))
    return warnings + [f"pending/{drop}: {error.problem} {error.mend}" for drop, error in sorted(growing.items())[:5]]


# Who holds locks and who waits for them, for the snapshot: `gates.locks`.


SHOWN = 200


def gates(desk: Desk, beats: Mapping[str, Heartbeat]) -> dict[str, Any]:
    """Return the part `gates` of the snapshot: nothing of a gate that concerns no task."""
    book = desk.backlog.locks.book
    if not (book.held or len(book.line)):
        return {}
    holders = [_holder(desk, key, beats) for key in islice(sorted(book.held), SHOWN)]
    aside = desk.backlog.locks.aside()
    firm = desk.backlog.locks.firm()
    waiting = sum(count for _, _, count in (*aside, *firm))
    rows = [_waiter(desk, *row) for row in sorted([*aside, *firm], key=lambda row: row[0])[:SHOWN]]
    return {"locks": {"held": len(book.held), "waiting": waiting, "holders": holders, "waiters": rows}}


def _holder(desk: Desk, holder: str, beats: Mapping[str, Heartbeat]) -> dict[str, Any]:
    book, place = desk.backlog.locks.book, desk.view.where.get(holder)
    reserved = book.reserved.get(holder)
    demand = book.held[holder] if reserved is None else reserved.demand
    row: dict[str, Any] = {"key": holder, "known": demand is not None}
    if demand is not None:
        row |= {"write": demand.write, "read": demand.read}
    if holder.startswith("+"):
        row["reservation"] = holder[1:]
    if reserved is not None:
        against = None if reserved.granted else book.against(holder)
        row |= {"granted": reserved.granted, "until": reserved.until, "by": reserved.by, "since": reserved.at}
        row |= {"reason": reserved.reason, "task": reserved.task, "behind": against.key if against else ""}
        return row
    name = parse_task(place.name) if place is not None else None
    if place is not None and name is not None:
        row |= {"task": name.id, "attempt": name.attempt, "state": place.state.value}
        if place.state is State.CLAIMED:
            worker = place.directory.partition("/")[2]
            runs = beats[worker].running if worker in beats else ()
            since = next((run.since for run in runs if (key(run.id), run.attempt) == (holder, name.attempt)), "")
            row |= {"worker": worker, "since": since}
        if holder in book.parents:
            row["waits"] = LONG if holder in book.idle else "now"
    return row


def _waiter(desk: Desk, file: str, keeper: str, count: int) -> dict[str, Any]:
    waiter = desk.backlog.locks.book.line.get(key_in(file))
    name = parse_task(file)
    assert name is not None
    row: dict[str, Any] = {"task": name.id, "file": file, "behind": keeper, "tasks": count}
    if waiter is not None:
        row |= {"write": waiter.demand.write, "read": waiter.demand.read, "lane": waiter.lane}
        row["position"] = desk.backlog.locks.book.line.position(waiter.turn) + 1
        if waiter.turn != turn_of(file):
            row["place"] = waiter.turn[0]
    return row


# The leader's alerts: judged when it makes a snapshot, published in it, then told.


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
                    data = existence.read(desk.store.fs, path)
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
        gone = {node: beats.get(node) for node in sorted(known & set(dead))}
        told = {alert.subject: alert.since for alert in self._board.standing if alert.name == "node_dead"}
        told |= {node: beat.at for node, beat in gone.items() if beat is not None}
        there = [beat for node, beat in beats.items() if node in desk.view.beats and node not in dead]
        return Figures(
            failures=desk.health.outcomes.now(now),
            workers=alive,
            dead=gone,
            succeeded=succeeded(told, there),
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
    """Whether a worker that has nothing to do can run a task that is ready; of the first few lanes, as `forecast`.

    A task with a limit of each worker does not count: its worker may wait for that, and only the worker knows.
    """
    limits = desk.store.settings.limits
    idle = [
        worker.capabilities
        for worker in forecast.awake(workers)
        if worker.capabilities and worker.slots and not desk.view.claimed.get(worker.node)
    ]
    ready = sorted(name for name, tasks in desk.view.ready.items() if tasks)[: forecast.LANES_JUDGED] if idle else []
    own = {name for name, limit in limits.items() if limit.per == "worker"}
    free = [name for name in ready if own.isdisjoint(limits_in(name, desk.store.settings) or ())]
    lanes = [lane for name in free if (lane := parse_lane(name)) is not None]
    return any(not unfit(lane, can) for lane in lanes for can in idle)
