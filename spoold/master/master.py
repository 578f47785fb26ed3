"""Master.step, which a daemon loops on and a simulator drives.

One step: look at the token of leadership; if this master has it, list the polled directories, plan, move, report.

Law: an error of the environment ends the step and proves nothing about any node; the next step begins again from the
listings. So does a fault of spoold that names no input, and then nothing that was remembered is used again. Nothing
of one epoch gets into the next. However long a step takes, token and beat are renewed on time: before each of its
calls to the share, and between the items of its long loops. Each stage has SLICE_S; what is left then, it does in the
next step.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spoold.master.intake import admission_directories
from spoold.master.limits.budget_accounts import Budgets
from spoold.master.limits.capacity import Breakers
from spoold.master.limits.result_stream import Feed, Subscriber
from spoold.master.listing import refresh
from spoold.master.listing.refresh import BREATHE_EVERY, adopt, follow, list_waiting
from spoold.master.report.status_report import Reporting
from spoold.master.stages import STAGES, Duties, run_safely
from spoold.master.state.leader_state import DAMAGED_MEND, OF_ONE_FILE_MEND, Desk, Orders, StepState, own_door
from spoold.master.state.leadership import Leadership
from spoold.master.state.tree_view import Place
from spoold.master.tasks import scheduler
from spoold.master.tasks.scheduler import gather_facts
from spoold.protocol import layout
from spoold.protocol.errors import BadFile, ShutOut
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import TaskName, key
from spoold.rules.cluster.liveness import Watch
from spoold.rules.cluster.pool_clock import Now
from spoold.store import heartbeats, pool_clock
from spoold.store.initialise import restore
from spoold.store.journal import Journal
from spoold.store.lanes_and_archive import list_archived
from spoold.store.own_heartbeat import Presence, provably_gone
from spoold.store.path_conflicts import named, obstacles
from spoold.store.predecessors import Predecessors, Standstill
from spoold.store.step_timing import OwnTime, Polling
from spoold.store.store import Store
from spoold.system.beating_filesystem import Breather, breathing
from spoold.system.errnos import Meaning, classify, concerns_one_file
from spoold.system.filesystem import DamagedError
from spoold.system.host import Host

log = logging.getLogger("spoold")

# A leader whose door was shut looks at the token again after this long (s).
DOOR_SHUT_S = 1.0
# So long (s) a stage takes items of which others decide how many there are. After a renewal that failed within a
# step, the next is tried so much later (s).
SLICE_S, AGAIN_S = 1.0, 0.5


@dataclass(frozen=True, slots=True)
class LeaderStep:
    """Result of a step: whether anything changed, and when (monotonic, s) the next one is needed at the latest.

    rest_s: how long news can wait, so that one look takes in the news of many tasks.
    """

    busy: bool
    next_due: float | None
    leading: bool
    rest_s: float = 0.0


class Master:
    """One master on one spool: a standby until it holds the token, then the leader.

    subscribers: these receive each attempt that ends while this master leads.
    """

    def __init__(
        self, store: Store, host: Host, subscribers: Sequence[Subscriber] = (), left: Collection[str] = ()
    ) -> None:
        """left: the nodes whose traces were found on this machine."""
        self._breather = Breather(store.clock)
        store.fs = breathing(store.fs, self._breather)
        self._own_time = OwnTime(store.clock, self._breather)
        self._renewing, self._led_epoch, self._renew_at = False, 0, 0.0
        self.store = store
        self.host = host
        self.leadership = Leadership(store)
        self._presence = Presence(store, host, "master")
        self._journal = Journal(store)
        store.faults.note = self._journal.note
        self._feed, self._budgets, self._breakers = Feed(subscribers), Budgets(), Breakers()
        self._desk: Desk | None = None
        self._doors = 0
        self._snapshots = itertools.count()
        self._due = 0.0
        self._stepped_at = 0.0
        self._followed = False
        self._holder, self._predecessors = Holder(store, host, left), Predecessors(store, host, "master")
        self._left = left
        self._damaged: dict[str, float] = {}
        self._begin()

    def _begin(self) -> None:
        """Reset the state of an epoch: nothing of it may leak into the next."""
        report = Reporting(self._snapshots)
        books = self._feed, self._budgets, self._breakers
        self._duties = Duties(self.leadership, self.host, self._relist, report, *books)
        self._doors_at: float | None = None
        self._relist_at: float | None = None
        self._relisted_s = 0.0
        self._standing = Standing()

    @property
    def leading(self) -> bool:
        """Whether this master leads, as far as it knows."""
        return self.leadership.token is not None

    @property
    def desk(self) -> Desk | None:
        """The leader's working state; None for a standby."""
        return self._desk

    def step(self) -> LeaderStep:
        """Do one round. Errors: OSError (the next step goes on), ShutOut (begin again under a new name)."""
        with self.store.faults.current():
            return self._step()

    def _step(self) -> LeaderStep:
        now = Now(self.store.clock.monotonic(), self.store.common.wall())
        self._followed = led = False
        try:
            if self._nothing_new(now):
                return LeaderStep(False, self._due, leading=True)
            if not self.leadership.hold(now.monotonic, self._holder.gone):
                if self.leadership.holder != self.store.writer:
                    self._desk = None  # else the token is mine and only its renewal is in doubt: do not plan
                self._beat(now.monotonic, "standby")
                with contextlib.suppress(OSError):  # their silence shows, too
                    self._predecessors.step(self._left)
                return LeaderStep(False, self._presence.next_due(), leading=False)
            led, self._led_epoch = True, self.leadership.epoch
            with self._breather.during(self._breathe_on_time), self._own_time.of("takeover"):
                desk = self._seat(now)
            self._beat(now.monotonic, "leader")
            with self._breather.during(self._breathe_on_time):
                step = self._lead(desk)
            self.leadership.came_to(None, now.monotonic)
            return step
        except admission_directories.DoorShut:
            self._desk = None  # if this master still leads, it begins its epoch anew
            log.info("a later leader shut the door of epoch %d, or it was removed", self.leadership.epoch)
            return LeaderStep(False, now.monotonic + DOOR_SHUT_S, leading=self.leading)
        except ShutOut:
            if self.store.shared:
                self.host.doubt()
            raise
        except OSError as error:
            self._note(error, now, led=led)
            if isinstance(error, NotADirectoryError) and (found := obstacles(self.store.fs)):
                raise NotADirectoryError(error.errno, "; ".join(found)) from error
            raise
        except Exception:
            self._desk = None  # a fault that names no input: whatever this leader remembers may be wrong
            raise
        finally:
            self._journal.flush()

    def _note(self, error: OSError, now: Now, *, led: bool) -> None:
        """An error of the environment has ended the step: it proves nothing about any node. led: as the leader."""
        self.leadership.untrusted()
        if self._desk is not None:
            self._desk.watch.untrusted()
        if isinstance(error, FileNotFoundError):
            self._restore()
        if led and classify(error) is not Meaning.FULL:  # a full share is full for every master
            self.leadership.came_to(error, now.monotonic)

    def close(self) -> None:
        """Resign and leave, so that a standby need not wait. Never raises OSError."""
        if not self.store.shared:
            self._feed.close(self._desk)
        with contextlib.suppress(OSError):
            self.leadership.resign()
            if self._desk is not None and not self.store.shared:
                self.store.fs.rmdir(self._desk.door.path)  # with something in it, it stays for the next leader
        self._journal.note("MASTER_LEFT")
        self._journal.flush(last=True)
        self._presence.leave()
        self.store.close_tmp()

    def _restore(self) -> None:
        """Make directories that a person removed: without them nothing would go on, and nothing would say why."""
        made = restore(self.store.fs)
        if made:
            log.warning("made again, since they had been removed: %s", ", ".join(made))
            self._journal.note("RESTORED", directories=made)

    def _seat(self, now: Now) -> Desk:
        """Return the desk of this epoch; a new leader first reads everything."""
        epoch = self.leadership.epoch
        if self._desk is not None and self._desk.epoch == epoch:
            self._desk.step.begin(now, followed=self._followed)
            self._desk.report.begin_step()
            self._desk.rejects.begin_step()
            self._desk.ledger = None
            return self._desk
        beat = self.store.settings.heartbeat
        now = self._learn_the_time(now)
        self._begin()
        self._journal.epoch = epoch
        self._doors += 1
        watch, step = Watch(beat.interval_s, beat.dead_after_s, self.leadership.absence), StepState(now)
        door, orders, polling = own_door(epoch, self.store.writer, self._doors), Orders(epoch), Polling(self.store)
        desk = Desk(self.store, self._journal, epoch, step, watch, door, orders, polling, breathe=self._breathe)
        desk.damaged, desk.book, desk.breakers = self._damaged, self._budgets.book, self._breakers.book
        take_over(desk)
        scheduler.reject_copies(desk)
        # The leader before may have made one last move after this: list waiting/ again once its lease is over.
        self._doors_at = self._relist_at = now.monotonic + beat.dead_after_s
        self._journal.note("LEADING", holder=self.store.writer, waiting=len(desk.backlog))
        self._desk = desk
        return desk

    def _learn_the_time(self, now: Now) -> Now:
        """Ask for the time before it is used to judge: a failure by a wrong clock would be final. Errors: OSError."""
        self.store.common.ask(self.store)
        self.store.common.agree(pool_clock.by_host(heartbeats.read_all(self.store.fs).values()).values())
        return Now(now.monotonic, self.store.common.wall())

    def _nothing_new(self, now: Now) -> bool:
        """Poll, where that costs round trips: a leader with nothing due need not even look at its token.

        The step that follows does not list the same again. Heartbeats that this poll listed make a step follow:
        silence is counted in looks, and a look that was not counted would make it twice as long.
        """
        desk = self._desk
        if desk is None or not desk.polling.rationed or now.monotonic >= self._due:
            return False
        desk.step.begin(now)
        refresh.follow(desk)
        self._followed = desk.step.busy or desk.step.listed.beats
        return not self._followed

    def _lead(self, desk: Desk) -> LeaderStep:
        duties = self._duties
        duties.followed = self._followed
        for stage in STAGES:
            desk.step.begin_stage(self.store.clock.monotonic() + SLICE_S)
            with self._own_time.of(stage.name):
                run_safely(stage, desk, duties)
        dues = [
            desk.health.next_due() if duties.closed else duties.drops.next_due(),
            duties.batches.next_due(),
            duties.kept.next_due(),
            duties.rejudging.next_due(),
            desk.backlog.next_due(),
            duties.requests.next_due(desk),
            self.leadership.renew_due,
            refresh.ends_due(desk),
        ]
        if not desk.polling.rationed or duties.reporting.stale:
            dues += [self._presence.next_due(), duties.report_due]  # else the step that renews the token does these
        step, now, left = desk.step, desk.step.now.monotonic, duties.left or desk.step.left
        undecided = not duties.closed and duties.drops.undecided(desk)
        unsettled = step.busy or left or step.unsure or desk.missing or desk.door.half or undecided
        due = min(due for due in dues if due is not None)
        self._due = now if unsettled else due
        since_s, self._stepped_at = now - self._stepped_at, now
        rest_s = refresh.rest_s(desk, duties.taken, since_s)
        return LeaderStep(step.busy, now if left else due, leading=True, rest_s=rest_s)

    def _relist(self, desk: Desk) -> None:
        now = desk.step.now.monotonic
        if self._doors_at is not None and now >= self._doors_at:
            self._restore()
            admission_directories.shut_others(desk)
            admission_directories.look_behind(desk)
            self._doors_at = now + refresh.RELIST_EVERY_S
        if self._relist_at is not None and now >= self._relist_at:
            refresh.relist(desk)
            scheduler.reject_copies(desk)
            before_s, self._relisted_s = self._relisted_s, self.store.clock.monotonic() - now
            self._relist_at = now + refresh.relist_in_s(self._relisted_s, before_s)
            self._standing.relisted(desk)
        self._standing.step(desk)

    def _breathe(self) -> None:
        """Renew token and beat within a long step. Errors: OSError, DoorShut when this master no longer leads."""
        now, token = self.store.clock.monotonic(), self.leadership.token
        if self._renewing:
            return
        if token is None or now >= self.leadership.renew_must:
            self._renew(now)
        if self.leadership.token is None or self.leadership.epoch != self._led_epoch:
            raise admission_directories.DoorShut(layout.ADMITTING)
        if self._presence.due(now):
            self._renew(now)

    def _breathe_on_time(self) -> None:
        """The same before any call to the share, where an error would be taken for one of that call: then the step
        goes on, each move still is one rename, and the next item of a long loop tells it.
        """
        now, token = self.store.clock.monotonic(), self.leadership.token
        due = token is not None and (now >= self.leadership.renew_must or self._presence.due(now))
        if due and now >= self._renew_at and not self._renewing:
            self._renew_at = now + AGAIN_S
            try:
                self._renew(now)
            except ShutOut:
                raise
            except Exception:  # noqa: BLE001  neither is it the fault of the input that is handled: the next beat has it
                self._renew_at = now + AGAIN_S

    def _renew(self, now: float) -> None:
        token, must = self.leadership.token, self.leadership.renew_must
        self._renewing = True
        try:
            held = (token is not None and now < must) or self.leadership.hold(now, self._holder.gone)
            if held and self._presence.due(now):
                self._presence.beat(now, "leader", within=True, **self._load())
        finally:
            self._renewing = False

    def _beat(self, now: float, status: str) -> None:
        if self._presence.due(now):
            self._presence.beat(now, status, **self._load())

    def _load(self) -> dict[str, Any]:
        notes = (f"{self._journal.lost} journal lines lost",) if self._journal.lost else ()
        notes = (*notes, *named(list(self.store.faults.notes), "inputs that spoold could not handle"))
        return {"notes": notes, **self.host.load("/").known()}


# Reads everything, once, before a new leader plans. Afterwards the leader follows differences.


def take_over(desk: Desk) -> None:
    """Learn the whole tree. Errors: OSError; then the epoch has not begun and the next step tries again."""
    admission_directories.open_door(desk)
    follow(desk)
    for number, (_, name, kind) in enumerate(list_archived(desk.store.fs, blocked=desk.view.blocked), 1):
        desk.view.archived.add(key(name.id), shown_end(State(kind), skipped=name.skipped))
        if not number % BREATHE_EVERY:
            desk.breathe()
    # A leader before may be in the middle of its last step, and take a token back to waiting/ unseen, but only once;
    # so the polled directories are listed before waiting/ and after it.
    gather_facts(desk)
    tokens = list_waiting(desk)
    desk.step.doubt()
    follow(desk)
    adopt(desk, tokens)
    desk.view.members.begin(desk.epoch, desk.orders.last)


# Whether the holder of the token of leadership is gone from this very host: then no standby need wait for its
# lease.


EVERY_S = 1.0


class Holder:
    """Looks the holder's process up, at most once a second."""

    def __init__(self, store: Store, host: Host, left: Collection[str] = ()) -> None:
        """left: the nodes whose traces were found on this machine."""
        self._left = left
        self._store = store
        self._host = host
        self._at: float | None = None
        self._gone: dict[str, bool] = {}
        self._standstill = Standstill(store, host)

    def gone(self, holder: str) -> bool:
        """Whether the holder ran on this host and its process is gone. Errors: OSError."""
        now = self._store.clock.monotonic()
        if self._at is None or now - self._at >= EVERY_S or holder not in self._gone:
            self._at = now
            beat = heartbeats.list_beats(self._store.fs).get(holder)
            read = heartbeats.read(self._store.fs, beat) if beat is not None else None
            missing = (
                {} if beat is None or read is None or not provably_gone(read, self._host) else {holder: beat.beat}
            )
            gone = [node for node in missing if node in self._left] or self._standstill.gone(missing, now)
            self._gone = {holder: holder in gone}
        return self._gone[holder]


# Files in ready/ that are no tasks: told in `warnings`, since no worker may ever open them.


READ_MOST = 4
# So many wrong ones are known at most: anybody may put any number there, and each costs a look in every step.
KNOWN_MOST = 100


@dataclass(slots=True)
class Standing:
    """seen: the files in ready/ at the last relisting; read: those of them that were read; due: those to be read.

    wrong: what is wrong with one, in a sentence with the fix.
    """

    seen: dict[Place, TaskName] = field(default_factory=dict)
    read: set[Place] = field(default_factory=set)
    due: list[Place] = field(default_factory=list)
    wrong: dict[Place, str] = field(default_factory=dict)

    def relisted(self, desk: Desk) -> None:
        """Choose what to read until the next relisting."""
        before = self.seen
        self.seen = {
            Place(state, directory, file): name
            for state, directory, names in desk.view.moving()
            if state is State.READY
            for file, name in names.items()
        }
        self.read &= self.seen.keys()
        stood = (place for place in self.seen if place in before)
        self.due = [place for place in stood if place not in self.read or place in self.wrong]

    def step(self, desk: Desk) -> None:
        """Read a few, and report those that are no tasks. Errors: OSError that concerns more than one file."""
        for _ in range(min(READ_MOST, len(self.due))):
            place = self.due.pop()
            if len(self.wrong) >= KNOWN_MOST and place not in self.wrong:
                continue
            self.read.add(place)
            self.wrong.pop(place, None)
            if _stands(desk, place):
                said = desk.contained("standing task", place, self.seen[place], partial(_fault, desk, place.path))
                if said:
                    self.wrong[place] = said
        for place in [place for place in self.wrong if not _stands(desk, place)]:
            del self.wrong[place]
            self.read.discard(place)  # a person may put another file there under its name
        desk.report.saw_wrong(self.wrong.values())


def _stands(desk: Desk, place: Place) -> bool:
    return place.name in desk.view.ready.get(place.directory.partition("/")[2], {})


def _fault(desk: Desk, path: str) -> str:
    """What is wrong with a file, in a sentence with the fix; '' for nothing. Errors: OSError."""
    try:
        desk.read_task(path)
    except BadFile as error:
        return f"{error.told()} The worker that claims it ends it as INVALID_TASK. Fix: {error.mend}"
    except OSError as error:
        if not concerns_one_file(error):
            raise
        mend = DAMAGED_MEND if isinstance(error, DamagedError) else OF_ONE_FILE_MEND
        return f"{path}: {error.strerror}; {mend}"
    return ""
