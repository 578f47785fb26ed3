"""The desk: the leader's working state, its parts that no other module holds, and the moves that its duties share.

Law: a desk is made of parts, and each part's docstring says what it is and who changes it: nobody but its own methods
does, and a test holds it so. All of it can be rebuilt from the tree. Of the state of a step, `unsure` stays over
steps that fail, until a step has listed everything; all else is of one step, and a stage whose time is up leaves the
rest to the next (`Desk.some`). A sequence number is given once. What the report holds decides nothing. When a move
through here returns, the view, the backlog and the journal agree on the token. It may touch the spool's files.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spoold.master.state.fingerprints import Rejects
from spoold.master.state.known_tasks import Ends, Learned, Missing
from spoold.master.state.limit_usage import Starts, UnitsLent, Usage
from spoold.master.state.pool_health import Fleet, Health
from spoold.master.state.tree_view import Place, View, Wanted, waiting_place
from spoold.protocol import codec, layout
from spoold.protocol.admission_names import BatchName, DoorEntry, DoorName, OriginalName
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import MICROS_MAX, EndedName, TaskName, encode_order, is_conditional, key, key_in, skipper
from spoold.protocol.request import Request
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_costs import Ran, plus, total_of
from spoold.rules.cluster.liveness import Watch
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.entry.admission import Accepted
from spoold.rules.gates.breaker_gate import Book as Breakers
from spoold.rules.gates.budget_gate import Book
from spoold.rules.gates.budget_usage import NOTHING, asked_by, drawn
from spoold.rules.gates.facts import NO_CONDITIONS
from spoold.rules.gates.registry import conditions_of
from spoold.rules.gates.resources import Resources, limits_in
from spoold.rules.gates.standing_requests import paused_by
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.fair_shares import UNREAD, share_of
from spoold.rules.scheduling.waiting_task import Entry
from spoold.store import existence
from spoold.store.attempt_records import Ledger, write_record
from spoold.store.contained_faults import Fault, Faults
from spoold.store.existence import regular
from spoold.store.journal import Journal
from spoold.store.lanes_and_archive import move_into_lane
from spoold.store.leader_files import is_watched
from spoold.store.mover import Fate, Moved
from spoold.store.path_conflicts import obstacle, refusal
from spoold.store.step_timing import Polling
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import DamagedError

# The state of a leader's step so far, and the part that it leaves to the next one.


@dataclass(slots=True)
class StepState:
    """now: the moment of this step; listed: its listings; busy: whether anything has changed; denied: an operation
    was not allowed, since this was cleared; unsure: the next step lists everything. until: when (monotonic, s) the
    time of this stage is up; cut: it has left something to the next step; left: a stage of this step has.
    """

    now: Now
    listed: Wanted = field(default_factory=Wanted)
    busy: bool = False
    denied: bool = False
    unsure: bool = True
    until: float = math.inf
    cut: bool = False
    left: bool = False

    def begin(self, now: Now, *, followed: bool = False) -> None:
        """Begin a step. followed: it goes on with the listings made just before, and with their changes."""
        self.now, self.busy, self.left = now, self.busy and followed, False

    def begin_stage(self, until: float) -> None:
        """Begin a stage, which has until then (monotonic, s)."""
        self.until, self.cut = until, False

    def leave(self) -> None:
        """The time of this stage is up, and the next step goes on with the rest."""
        self.cut = self.left = True

    def looked(self, wanted: Wanted, *, changed: bool) -> None:
        """Record which listings were made. changed: they showed something new."""
        self.listed = wanted
        self.unsure = self.unsure and not wanted.everything
        self.busy = self.busy or changed

    def change(self) -> None:
        """Something was moved, written or removed, or may go on now: another step follows soon."""
        self.busy = True

    def deny(self) -> None:
        """Something was not allowed, so it is not tried again at once."""
        self.denied = True

    def clear_denial(self) -> None:
        """Clear `denied`, so that the next operation is judged by itself."""
        self.denied = False

    def doubt(self) -> None:
        """A token may be elsewhere than the listings have shown."""
        self.unsure = True


# The order numbers that a leader gives: later than all that it has seen, whatever the clock says.


ROOM_MICROS = 10**13  # four months of orders


@dataclass(slots=True)
class Orders:
    """The numbers of one epoch; last: the latest that was given or seen."""

    epoch: int
    last: int = 0

    def saw(self, micros: int) -> bool:
        """Make later orders exceed this one; False if that leaves no room for them: no leader made it."""
        if micros > MICROS_MAX - ROOM_MICROS:
            return False
        self.last = max(self.last, micros)
        return True

    def next_micros(self, wall: float, count: int = 1) -> int:
        """Return the next number at this time (s since 1970), later than all before, and take `count` numbers."""
        micros = max(int(wall * 1e6), self.last + 1)
        self.last = micros + count - 1
        return micros

    def encode(self, micros: int) -> str:
        """Return the order that such a number makes in this epoch."""
        return encode_order(micros, self.epoch)


# Sentences and figures for people about a leader's work, gathered until the next snapshot.


# How long (s) a refused request stays among the warnings, and how many are remembered.
REFUSED_SHOWN_S, REFUSED_KEPT = 600.0, 1000


@dataclass(slots=True)
class LeaderReport:
    """The sentences and the figures.

    notices: of this step; locked: doors that this user may not empty; wrong: files in ready/ that are no tasks;
    refused: requests that were removed since their content is wrong, each with when (monotonic, s): no file is left
    to warn of; rejected: drops in rejected/; rejections, endings: drops that this leader rejected, and tasks that it
    ended itself, by cause, since the last snapshot; undone: moves that the server undid; undone_at: when (monotonic,
    s) the last one was seen.
    """

    notices: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=REFUSED_KEPT))
    rejected: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    undone: int = 0
    undone_at: float = -math.inf

    def begin_step(self) -> None:
        """Forget the notices of the step before."""
        self.notices.clear()

    def notice(self, *sentences: str) -> None:
        """Add sentences to those of this step."""
        self.notices += sentences

    def refuse(self, sentence: str, now: float) -> None:
        """Add a request that was removed since its content is wrong. now: monotonic, s."""
        self.refused.append((now, sentence))

    def refusals(self, now: float) -> list[str]:
        """Return the requests that were refused lately. now: monotonic, s."""
        return list(dict.fromkeys(said for at, said in self.refused if now - at < REFUSED_SHOWN_S))

    def saw_wrong(self, sentences: Iterable[str]) -> None:
        """Replace what is said of files in ready/ that are no tasks."""
        self.wrong[:] = sentences

    def lock(self, sentence: str) -> None:
        """Add a door that this user may not empty."""
        self.locked.append(sentence)

    def unlock_all(self) -> None:
        """Forget the doors: they are looked at anew."""
        self.locked.clear()

    def rejected_one(self, cause: str) -> None:
        """Count a drop that this leader rejected."""
        self.rejected += 1
        self.rejections[cause] += 1

    def brought_back(self) -> None:
        """Count a drop that has left rejected/ again."""
        self.rejected = max(0, self.rejected - 1)

    def count_rejected(self, there: int) -> None:
        """Correct the number of drops in rejected/ by a listing."""
        self.rejected = there

    def ended(self, cause: str) -> None:
        """Count a task that this leader ended itself, or an attempt that ended with its worker."""
        self.endings[cause] += 1

    def counted(self) -> None:
        """The causes are in a snapshot: count from nothing again."""
        self.endings.clear()
        self.rejections.clear()

    def undid(self, moves: int, now: float) -> None:
        """Count tokens that are back where they were before a move that the server confirmed. now: monotonic, s."""
        self.undone += moves
        self.undone_at = now


# The content of this leader's own door, so far as it knows.


@dataclass(slots=True)
class OwnDoor:
    """A directory below admitting/ and the names in it.

    half: tasks that are to be admitted; originals: drops whose copies become tasks; batches: those under way;
    kept: batches all of whose lines are tasks, and whose writer may go on; promised: the findings in each batch under
    way that this leader accepted itself; in_doubt: more may have come in.
    """

    path: str
    half: set[TaskName] = field(default_factory=set)
    originals: set[OriginalName] = field(default_factory=set)
    batches: set[BatchName] = field(default_factory=set)
    kept: set[BatchName] = field(default_factory=set)
    promised: dict[BatchName, Accepted] = field(default_factory=dict)
    in_doubt: bool = False

    @property
    def number(self) -> int:
        """Its number among the doors of this master, which may have several in one epoch."""
        return int(self.path.rpartition(".")[2])

    def came(self, name: DoorEntry) -> None:
        """Note a drop or a batch that stands here now, as its name says."""
        if isinstance(name, TaskName):
            self.half.add(name)
        elif isinstance(name, OriginalName):
            self.originals.add(name)
        else:
            (self.kept if is_watched(name) else self.batches).add(name)

    def left(self, name: DoorEntry) -> None:
        """Note that this drop or batch does not stand here any more, or is not admitted from here."""
        standing: tuple[set[Any], ...] = (self.half, self.originals, self.batches, self.kept)
        for names in standing:
            names.discard(name)

    def begin(self, name: BatchName, accepted: Accepted) -> None:
        """Note a batch under way that this leader accepted itself."""
        self.promise(name, accepted)
        self.batches.add(name)

    def promise(self, name: BatchName, accepted: Accepted) -> None:
        """Note the findings in a batch."""
        self.promised[name] = accepted

    def unread(self, name: BatchName) -> None:
        """Forget the findings in a batch: it is to be read anew."""
        self.promised.pop(name, None)

    def finish(self, name: BatchName) -> None:
        """Note that a batch is not under way any more."""
        self.batches.discard(name)
        self.unread(name)

    def doubt(self) -> None:
        """Note that more may have come in."""
        self.in_doubt = True

    def looked(self) -> None:
        """Note that the door is about to be listed."""
        self.in_doubt = False

    def at(self, name: str) -> str:
        """Return the path of a name in it."""
        return layout.join(self.path, name)

    def open_drops(self) -> int:
        """Return how many drops stand here that are not tasks yet."""
        return len(self.half) + len(self.originals) + len(self.batches)


def own_door(epoch: int, writer: str, number: int) -> OwnDoor:
    """Return the door of a leader that opens its number-th in this epoch."""
    return OwnDoor(layout.join(layout.ADMITTING, DoorName(epoch, writer, number).encode()))


T = TypeVar("T")
OF_ONE_FILE_MEND = "let the user that the master runs as read and remove it (chmod, chown), or move it away"
DAMAGED_MEND = "check the disk that it is on, or move the file out of the spool and submit the task again"


@dataclass(slots=True)
class Desk:
    """One leader's working state in one epoch.

    ledger: the records of earlier attempts, if this step asked for them. recorded: results, by name, that this leader
    wrote for moves that it has not made. damaged: tokens that could not be read, and since when (monotonic, s), over
    all epochs. request_ends: when requests end by themselves (s since 1970, the pool's clock). book: what the budgets
    have spent and reserved; breakers: the failures in a row, by type. ruled_by: what groups waiting tasks.
    breathe: call it between the items of a long loop, to keep the token of leadership; it raises OSError, DoorShut.
    turns: where a loop that was cut goes on.
    """

    store: Store
    journal: Journal
    epoch: int
    step: StepState
    watch: Watch
    door: OwnDoor
    orders: Orders
    polling: Polling
    view: View = field(default_factory=View)
    report: LeaderReport = field(default_factory=LeaderReport)
    learned: Learned = field(default_factory=Learned)
    usage: Usage = field(default_factory=Usage)
    fleet: Fleet = field(default_factory=Fleet)
    units: UnitsLent = field(default_factory=UnitsLent)
    starts: Starts = field(default_factory=Starts)
    missing: Missing = field(default_factory=Missing)
    rejects: Rejects = field(default_factory=Rejects)
    ends: Ends = field(default_factory=Ends)
    health: Health = field(default_factory=Health)
    book: Book = field(default_factory=Book)
    breakers: Breakers = field(default_factory=Breakers)
    ruled_by: Settings | None = None
    ledger: Ledger | None = None
    recorded: dict[str, tuple[Status, Error]] = field(default_factory=dict)
    damaged: dict[str, float] = field(default_factory=dict)
    request_ends: dict[Request, float] = field(default_factory=dict)
    breathe: Callable[[], None] = lambda: None
    turns: dict[str, int] = field(default_factory=dict)

    @property
    def resources(self) -> Resources:
        """The counted resources of the settings as they are now."""
        return self.usage.under(self.store.settings)

    @property
    def faults(self) -> Faults:
        """The inputs that this leader could not handle."""
        return self.store.faults

    @property
    def backlog(self) -> Backlog:
        """The waiting tasks."""
        return self.view.backlog

    @property
    def paused(self) -> dict[str, float | None]:
        """Return the types that are paused now, as `paused_by`."""
        return paused_by(self.view.requests, self.request_ends, self.step.now.wall)

    @property
    def late(self) -> bool:
        """Whether the time of this stage is up."""
        return self.store.clock.monotonic() >= self.step.until

    def some(self, items: Iterable[T], turn: str = "") -> Iterator[T]:
        """Yield items of which others decide how many there are: at least one, and as many as this stage has time
        for. Where some are left, `step.cut` is set, and the next step goes on with them. Errors: OSError, DoorShut.

        turn: a name for the loop, where some items stay: then it goes on behind those that it came to, so that no
        item waits for ever. Without one, each step begins with the first.
        """
        if turn:
            all_of_them = list(items)
            begin = self.turns.pop(turn, 0) % max(len(all_of_them), 1)
            items = all_of_them[begin:] + all_of_them[:begin]
        else:
            begin = 0
        for number, item in enumerate(items):
            if number and self.late:
                self.step.leave()
                if turn:
                    self.turns[turn] = begin + number
                return
            self.breathe()
            yield item

    def known_elsewhere(self, task_id: str, place: Place) -> bool:
        """Whether the id belongs to a task that is not the one at this place."""
        return self.view.known(task_id) and self.view.place(key(task_id)) != place

    def undid(self, moves: int) -> None:
        """Report that so many tokens are back where they were before a move, where a server can do that."""
        if moves and self.store.fs.forgets:
            self.report.undid(moves, self.step.now.monotonic)

    def doubt(self, task_key: str) -> None:
        """A task was not seen where it waits: take it out of the backlog, where it would not count as missing."""
        if (place := self.view.place(task_key)) is not None:
            self.view.stand(task_key, place)
        if (entry := self.backlog.remove(task_key)) is not None:
            self.learned.learn_demand(task_key, entry.conditions)
        self.missing.miss(task_key)

    def next_micros(self, count: int = 1) -> int:
        """Return the next order number, as `Orders.next_micros`."""
        return self.orders.next_micros(self.step.now.wall, count)

    def read_task(self, path: str) -> Task | None:
        """Return a token's content; None when it moved meanwhile. Errors: OSError, BadFile when it is no task."""
        with self.reading(path), regular(path):
            data = existence.read(self.store.fs, path)
        return None if data is None else codec.load_task(data, path)

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Wrap a read. An error that repeats for one file, step after step, on a share that can be listed, concerns
        that file alone. Errors: DamagedError then.
        """
        now = self.step.now.monotonic
        try:
            yield
        except OSError as error:
            if concerns_one_file(error) or self.damaged.setdefault(path, now) == now:
                raise
            raise DamagedError(error.errno, error.strerror) from error
        self.damaged.pop(path, None)

    def __post_init__(self) -> None:
        self.backlog.contain = self._judge

    def _judge(self, task_key: str, judge: Callable[[], None]) -> tuple[str, bool] | None:
        with self.faults.handling("gates of the task", task_key, task_key) as handling:
            judge()
        return None if handling.fault is None else (handling.fault.cause, handling.fault.lasts)

    def contained(self, kind: str, place: Place, name: TaskName, handle: Callable[[], T]) -> T | None:
        """Handle a token that no other node holds; None where that ends in a fault of spoold, or did so just before.
        Then the task fails if the fault lasts, and else it stays where it is; all other tasks go on.

        kind: words that end with `task`, one for each caller: what one has handled says nothing about another.
        Errors: OSError, ShutOut.
        """
        if self.faults.rests(kind, name.id):
            if key(name.id) not in self.backlog:  # a listing forgot where it stands: else its requests count as vain
                self.view.stand(key(name.id), place)
            return None
        with self.faults.handling(kind, name.id, name.id, name.attempt) as handling:
            return handle()
        self.step.doubt()
        if handling.fault is not None:
            self.set_aside(place, name, handling.fault)
        return None

    def set_aside(self, place: Place, name: TaskName, fault: Fault) -> None:
        """End a task that spoold cannot handle, if another try would fail, too; else it stays, and is told of."""
        self.backlog.remove(key(name.id))  # else it would be chosen again in every step; a later listing adopts it
        self.view.stand(key(name.id), place)
        if fault.lasts:
            with self.faults.handling("end of the task", name.id, name.id, name.attempt):
                self.fail(place, name, Error(code=Code.INVALID_TASK, message=fault.cause), Status.FAILURE)

    def task_at(self, place: Place, name: TaskName) -> Task | None:
        """Return the content of a token that no other node holds; None when it moved, cannot be read, or is no task.
        A token that is no task fails; one that this user may not read stays where it is.
        """
        return self.contained("file of the task", place, name, lambda: self._task_at(place, name))

    def _task_at(self, place: Place, name: TaskName) -> Task | None:
        try:
            return self.read_task(place.path)
        except BadFile as error:
            self.view.stand(key(name.id), place)
            self.fail(place, name, Error(code=Code.INVALID_TASK, message=str(error)), Status.FAILURE)
        except PermissionError as error:
            self.view.stand(key(name.id), place)
            self.tell(place.path, error)
        return None

    def tell(self, path: str, error: OSError, besides: str = "") -> None:
        """Warn of an error that concerns one file only; all other work goes on. besides: what follows from it.

        Errors: the error itself, if it says more than that about the share.
        """
        if not concerns_one_file(error):
            raise error
        if isinstance(error, NotADirectoryError) and (found := obstacle(self.store.fs, path.rpartition("/")[0])):
            self.report.notice(f"{found}{besides}")
        else:
            mend = DAMAGED_MEND if isinstance(error, DamagedError) else OF_ONE_FILE_MEND
            self.report.notice(f"{path}: {error.strerror}; {mend}{besides}")

    def enlist(self, file: str, lane: str, task: Task | None, delay_ms: int) -> None:
        """Add a token in waiting/ to the backlog. task is needed if the name is conditional.

        The rest between attempts counts from here, since this leader first saw the token now.
        """
        read = task if is_conditional(file) else None
        conditions = conditions_of(read) if read is not None else NO_CONDITIONS
        if task is None:
            self.view.members.came(key_in(file), file)
        else:
            self.view.members.see(key_in(file), task.batch)
        if conditions.needs_batch:
            self.view.members.watch(conditions.needs_batch)
        rest_until = self.step.now.monotonic + delay_ms / 1000 if delay_ms else 0.0
        share = self.share_of(key_in(file), file)
        task_key = self.backlog.add(Entry(file, lane, conditions, rest_until, share=share), self.step.now)
        before = self.view.unplace(task_key)  # the backlog says where it waits
        if before is not None and before.state in (State.COMPLETED, State.FAILED):
            self.backlog.parent_changed(task_key, self.step.now)
        self.learned.waits(task_key, conditions.deadline)
        if read is not None:
            self.learned.learn_asked(task_key, asked_by(read) or NOTHING)

    def share_of(self, task_key: str, file: str) -> str:
        """Return of which share an open task is, as far as that is known: whose turn it needs."""
        settings = self.backlog.turns.settings
        if (share := self.learned.shares.get(task_key)) is not None or settings.by == "none":
            return share or ""
        known, batch = self.view.members.batch_of(task_key, file)
        return share_of(settings, batch, None) if known and settings.by == "batch" else UNREAD

    def owner_of(self, path: str) -> int | None:
        """Return whose file a drop is that the leader copies, if users take turns: the copies are its own. None where
        that is not known, or does not matter.
        """
        if self.backlog.turns.settings.by != "owner":
            return None
        try:
            return self.store.fs.stat(path).owner
        except OSError:
            return None  # its tasks count as the leader's own

    def learn_owner(self, task_key: str, owner: int | None) -> None:
        """Note whose drop a task was."""
        if owner is not None:
            self.learned.learn_share(task_key, share_of(self.backlog.turns.settings, None, owner))

    def to_waiting(self, src: str, name: TaskName, lane: str, task: Task | None, event: str, **detail: str) -> Moved:
        """Move a token into waiting/ and enlist it."""
        file = name.encode()
        moved = move_into_lane(self.store, event, src, layout.WAITING, lane, file)
        if self.went(moved, name.id):
            place = waiting_place(lane, file)
            self.contained("new task", place, name, lambda: self.enlist(file, lane, task, name.delay_ms))
            self.journal.note(event, name.id, name.attempt, lane=lane, file=file, **detail)
        return moved

    def went(self, moved: Moved, task_id: str) -> bool:
        """Whether a move was made; a refused move is reported, a lost one is seen at the next listing."""
        if moved:
            self.step.change()
        elif moved.fate is Fate.REFUSED or isinstance(moved.error, PermissionError):
            self.step.deny()
            self.report.notice(refusal(self.store.fs, f"task {task_id}", moved))
        return bool(moved)

    def record(self, src: str, name: TaskName, said: tuple[Status, Error], ran: Ran | None) -> EndedName | None:
        """Write the leader's own result for an attempt that no worker can report; only once. Errors: OSError.

        It is written anew if the move that it was for was not made, and another move follows now. None: it was made
        after all, for the task has left src.
        ran: when a dead worker's attempt began, and for how long (s) it ran, as far as that was seen.
        """
        status, error = said
        ended = name.ended(skipper(self.store.writer) if status is Status.SKIPPED else self.store.writer)
        file = ended.encode()
        path, before = layout.join(layout.RESULTS, file), self.recorded.get(file)
        # One that was written in an earlier step may be gone since: somebody may have put an older tree back.
        if before != said or not existence.stands(self.store.fs, path):
            if before is not None and not existence.stands(self.store.fs, src):
                return None
            lane, rejected = self.learned.lanes.get(key(name.id), ""), error.code is Code.REJECTED
            result = Result(
                task_id=name.id,
                attempt=name.attempt,
                worker_id=layout.claimant(src) or self.store.writer,
                status=status,
                started_at=ran.since if ran else None,
                duration_s=round(ran.ran_s, 3) if ran else 0.0,
                frozen_s=(ran.frozen_s if ran else 0.0) or None,
                completed_at=self.store.stamp(),
                error=error,
                estimated=ran is not None,
                approval=self.backlog.parked.rejection(name, self.backlog.get(key(name.id))) if rejected else None,
                **drawn(lane, self.learned.asked_by(key(name.id)), self.backlog.draws),
                uses=self._used(key(name.id)) if status is Status.WORKER_DIED else None,
            )
            if name.attempt > 1:
                self.ledger = self.ledger or Ledger(self.store.fs)
                own, earlier = total_of([result]), self.ledger.total_before(name.id, name.attempt)
                result = result.model_copy(update={"total": plus(earlier, own) if earlier and own else own})
            data = codec.dump(result)
            self.report.notice(*write_record(self.store, path, data, durable=self.store.durable))
            self.recorded[file] = said
        return ended

    def _used(self, task_key: str) -> dict[str, int]:
        """Return what a lost attempt used of each limit; the most, where its lane is not sure."""
        found: dict[str, int] = {}
        for lane in self.learned.all_lanes(task_key):
            for name, units in (limits_in(lane, self.store.settings) or {}).items():
                found[name] = max(found.get(name, 0), units)
        return found

    def fail(self, place: Place, name: TaskName, error: Error, status: Status, ran: Ran | None = None) -> bool:
        """End a task that no worker holds any more: the leader's result, then the move; True when it has ended.

        ran: as `record`.
        """
        try:
            ended = self.record(place.path, name, (status, error), ran)
        except OSError as trouble:
            self.tell(place.path, trouble)
            return False
        file = ended.encode() if ended else ""
        dst = layout.join(layout.FAILED, file)
        moved = self.store.move(Mover.LEADER, "FAILED", place.path, dst) if ended else Moved(Fate.LOST)
        if ended is None or not self.went(moved, name.id):
            if moved.fate is Fate.LOST and key(name.id) in self.backlog:
                self.doubt(key(name.id))
            return False
        self.recorded.pop(file, None)
        self.view.forget_place(place)
        self.view.settle(name.id, State.FAILED, layout.FAILED, file)
        k, lane, claimed = key(name.id), self.learned.lanes.get(key(name.id)), place.state is State.CLAIMED
        self.ends.see(self.view.where[k], lane, self.learned.asked_by(k))
        self.health.failed(k, lane, self.store.settings.alerts, self.step.now.monotonic, ran=claimed)
        self.ended(key(name.id))
        if status is not Status.SKIPPED:
            self.report.ended(error.cause or error.code)
        event, worker = "SKIPPED" if status is Status.SKIPPED else "FAILED", layout.claimant(place.path)
        detail = {"worker": worker} if worker else {}
        self.journal.note(event, name.id, name.attempt, code=error.code, message=error.message, **detail)
        return True

    def ended(self, task_key: str) -> None:
        """A task ended: forget it, and check again the tasks that wait for it."""
        self.learned.forget(task_key)
        self.backlog.remove(task_key)
        with self.faults.handling("batch of the task", task_key, task_key):
            self.view.members.left(task_key)
        with self.faults.handling("end to tell of the task", task_key, task_key):
            self.backlog.parent_changed(task_key, self.step.now)
