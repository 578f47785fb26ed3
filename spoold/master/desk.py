"""The leader's working state, and the moves that several of its duties share.

Law: a desk is made of parts, and each part's docstring says what it is and who changes it. All of it can be rebuilt
from the tree. State of one step alone is in `step`, which changes by its own methods. When a move through here
returns, the view, the backlog and the journal agree on the token. It may touch the spool's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from spoold.master.ends import Ends
from spoold.master.fleet import Fleet
from spoold.master.health import Health
from spoold.master.learned import Learned
from spoold.master.missing import Missing
from spoold.master.orders import Orders
from spoold.master.own_door import OwnDoor
from spoold.master.place import Place, waiting_place
from spoold.master.rejects import Rejects
from spoold.master.report import LeaderReport
from spoold.master.starts import Starts
from spoold.master.step_state import StepState
from spoold.master.units_lent import UnitsLent
from spoold.master.usage import Usage
from spoold.master.view import View
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.name_parts import is_conditional, key_in
from spoold.protocol.names import EndedName, TaskName, key, skipper
from spoold.protocol.request import Request
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.accounts import Ran, plus, total_of
from spoold.rules.cluster.liveness import Watch
from spoold.rules.gates.closing import paused_by
from spoold.rules.gates.facts import NO_CONDITIONS
from spoold.rules.gates.registry import conditions_of
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.breakers import Book as Breakers
from spoold.rules.scheduling.budgets import Book
from spoold.rules.scheduling.entry import Entry
from spoold.rules.scheduling.resources import Resources, limits_in
from spoold.rules.scheduling.spending import NOTHING, asked_by, drawn
from spoold.store import absence
from spoold.store.faults import Fault, Faults
from spoold.store.journal import Journal
from spoold.store.lane_moves import move_into_lane
from spoold.store.ledger import Ledger
from spoold.store.mover import Fate, Moved
from spoold.store.obstacles import obstacle
from spoold.store.polling import Polling
from spoold.store.records import write_record
from spoold.store.refusals import refusal
from spoold.store.regular import regular
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import DamagedError

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
            data = absence.read(self.store.fs, path)
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
        task_key = self.backlog.add(Entry(file, lane, conditions, rest_until), self.step.now)
        before = self.view.unplace(task_key)  # the backlog says where it waits
        if before is not None and before.state in (State.COMPLETED, State.FAILED):
            self.backlog.parent_changed(task_key, self.step.now)
        self.learned.waits(task_key, conditions.deadline)
        if read is not None:
            self.learned.learn_asked(task_key, asked_by(read) or NOTHING)

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
        path, before = layout.join(layout.RESULTS, ended.encode()), self.recorded.get(ended.encode())
        # One that was written in an earlier step may be gone since: somebody may have put an older tree back.
        if before != said or not absence.stands(self.store.fs, path):
            if before is not None and not absence.stands(self.store.fs, src):
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
            self.recorded[ended.encode()] = said
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
        dst = layout.join(layout.FAILED, ended.encode()) if ended else ""
        moved = self.store.move(Mover.LEADER, "FAILED", place.path, dst) if ended else Moved(Fate.LOST)
        if ended is None or not self.went(moved, name.id):
            if moved.fate is Fate.LOST and key(name.id) in self.backlog:
                self.doubt(key(name.id))
            return False
        self.recorded.pop(ended.encode(), None)
        self.view.forget_place(place)
        self.view.settle(name.id, State.FAILED, layout.FAILED, ended.encode())
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
