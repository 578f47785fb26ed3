"""What a leader works with, and the moves that several of its duties share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spoold.master.view import Place, View, Wanted
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import BatchName, DoorName, EndedName, TaskName, key
from spoold.protocol.order import encode_order
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.task import Task
from spoold.rules.backlog import Backlog, Entry, Now
from spoold.rules.batch import Accepted
from spoold.rules.gates import NO_CONDITIONS, conditions_of
from spoold.rules.liveness import Watch
from spoold.store import absence
from spoold.store.archive import find_archived
from spoold.store.journal import Journal
from spoold.store.lanes import move_into_lane
from spoold.store.looks import Looks
from spoold.store.mover import Fate, Moved
from spoold.store.regular import regular
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import NotRegularError

OF_ONE_FILE_MEND = "let the user that the master runs as read and remove it (chmod, chown), or move it away"


@dataclass(slots=True)
class Desk:
    """One leader's working state in one epoch; all of it can be rebuilt from the tree.

    lanes: the lane of every task that is ready or claimed; deadlines: wall time (s) by key of tasks that have one;
    active: how many tasks of each type are ready or claimed; missing: keys whose place is in doubt; vanished: how
    many of them were nowhere at last; half: files in this leader's door that are to be admitted; promised: what was
    found in each batch under way, of those that this leader accepted itself; door_in_doubt: more may have come into
    it; unlearned: keys whose lane and deadline are to be looked up; now: the moment of this step; dead: nodes that
    were reaped, and when (monotonic, s); busy: whether this step changed anything; taken: the names in rejected/,
    listed once a step if need be; denied: a move was not allowed (whoever asks resets it); recorded: results that
    this leader wrote for moves it has not made, by their names; notices: what people should know of this step;
    looks: when what is listed; listed: what this step has listed; unsure: the next step is to list everything;
    breathe: to be called between one thing and the next wherever there may be many, so that on a slow share the
    token does not grow old; it raises OSError, DoorShut when somebody else leads.
    """

    store: Store
    journal: Journal
    epoch: int
    now: Now
    watch: Watch
    view: View = field(default_factory=View)
    lanes: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    active: Counter[str] = field(default_factory=Counter)
    missing: set[str] = field(default_factory=set)
    vanished: int = 0
    unlearned: list[str] = field(default_factory=list)
    batches: set[BatchName] = field(default_factory=set)
    promised: dict[BatchName, Accepted] = field(default_factory=dict)
    half: set[str] = field(default_factory=set)
    door_number: int = 0
    door: str = field(init=False)
    door_in_doubt: bool = False
    busy: bool = False
    notices: list[str] = field(default_factory=list)
    rejected: int = 0
    taken: set[str] | None = None
    denied: bool = False
    recorded: dict[str, tuple[Status, Error]] = field(default_factory=dict)
    dead: dict[str, float] = field(default_factory=dict)
    looks: Looks = field(init=False)
    listed: Wanted = field(default_factory=Wanted)
    unsure: bool = True
    last_micros: int = 0
    breathe: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.looks = Looks(self.store)
        self.door = layout.join(layout.ADMITTING, DoorName(self.epoch, self.store.writer, self.door_number).encode())

    @property
    def backlog(self) -> Backlog:
        """What waits."""
        return self.view.backlog

    def known_elsewhere(self, task_id: str, place: Place) -> bool:
        """Whether the id belongs to a task that is not the one at this place."""
        return self.view.known(task_id) and self.view.place(key(task_id)) != place

    def has_completed(self, task_id: str) -> bool:
        """Whether a task of this id has completed. Success is for ever: any other token that has it is a copy that
        somebody restored, unless the server forgot the commit, so that is looked up. Errors: OSError.
        """
        place, ended = self.view.place(key(task_id)), self.view.archived.state(key(task_id))
        if place is not None and place.state is State.COMPLETED and absence.stands(self.store.fs, place.path):
            return True
        return ended is State.COMPLETED and find_archived(self.store.fs, task_id) is not None

    def doubt(self, task_key: str) -> None:
        """A task was not seen where it waits: as long as it stood in the backlog, nobody would miss it."""
        place = self.view.place(task_key)
        if place is not None:
            self.view.where[task_key] = place
        self.backlog.remove(task_key)
        self.missing.add(task_key)

    def next_micros(self, count: int = 1) -> int:
        """The next order number, later than all before; `count` numbers are taken. Microseconds since 1970."""
        micros = max(int(self.now.wall * 1e6), self.last_micros + 1)
        self.last_micros = micros + count - 1
        return micros

    def order(self, micros: int) -> str:
        """The order that a number taken from `next_micros` makes in this epoch."""
        return encode_order(micros, self.epoch)

    def read_task(self, path: str) -> Task | None:
        """The content of a token; None when it moved meanwhile. Errors: OSError, BadFile when it is no task."""
        with regular(path):
            data = absence.read(self.store.fs, path)
        return None if data is None else codec.load_task(data, path)

    def task_at(self, place: Place, name: TaskName) -> Task | None:
        """The content of a token that nobody else holds; None when it moved, may not be read, or is no task: the last
        fails, and one that may not be read stays where it is.
        """
        try:
            return self.read_task(place.path)
        except BadFile as error:
            self.view.where[key(name.id)] = place
            self.fail(place, name, Error(code=Code.INVALID_TASK, message=str(error)), Status.FAILURE)
        except PermissionError as error:
            self.view.where[key(name.id)] = place
            self.tell(place.path, error)
        return None

    def tell(self, path: str, error: OSError) -> None:
        """One file stands in the way of nothing but itself: people hear of it, and all else goes on.

        Errors: the error itself, where it says more than that about the share.
        """
        if not concerns_one_file(error):
            raise error
        self.notices.append(f"{path}: {error.strerror}; {OF_ONE_FILE_MEND}")

    def says_the_same(self, task_id: str, new: Any, *, alone: bool = True) -> bool | None:
        """Whether the task with that id says what `new` does, wherever it is. Errors: OSError.

        None when it is moving just now. A damaged file says something else: nobody knows what it was. alone: what is
        new goes if it says the same, so where a server may have forgotten the other one, a listing has to show it.
        """
        place = self.view.place(key(task_id))
        path = find_archived(self.store.fs, task_id) if place is None else place.path
        try:
            if path is None:
                return None
            with regular(path):
                data = self.store.fs.read(path)
            same = codec.same_content(new, codec.load(data, path))
            doubtful = same and alone and self.store.fs.forgets
            return None if doubtful and not absence.stands(self.store.fs, path) else same
        except FileNotFoundError:
            return None
        except (BadFile, NotRegularError):
            return False
        except PermissionError as error:
            self.tell(path or task_id, error)
            return None

    def enlist(self, file: str, lane: str, task: Task | None, delay_ms: int) -> None:
        """A token stands in waiting/: into the backlog with it. task is needed where the name is conditional.

        The rest between attempts counts from here, since this is when this leader first saw it.
        """
        conditions = conditions_of(task) if task is not None else NO_CONDITIONS
        rest_until = self.now.monotonic + delay_ms / 1000 if delay_ms else 0.0
        task_key = self.backlog.add(Entry(file, lane, conditions, rest_until), self.now)
        self.view.where.pop(task_key, None)  # where it waits, the backlog says
        self.lanes.pop(task_key, None)
        if conditions.deadline is not None:
            self.deadlines[task_key] = conditions.deadline

    def to_waiting(self, src: str, name: TaskName, lane: str, task: Task | None, event: str, **detail: str) -> Moved:
        """Move a token into waiting/ and enlist it."""
        file = name.encode()
        moved = move_into_lane(self.store, src, layout.WAITING, lane, file)
        if self.went(moved, name.id):
            self.enlist(file, lane, task, name.delay_ms)
            self.journal.note(event, name.id, name.attempt, lane=lane, **detail)
        return moved

    def went(self, moved: Moved, task_id: str) -> bool:
        """Whether a move was made; a refused one is told to people, a lost one is seen at the next listing."""
        if moved:
            self.busy = True
        elif moved.fate is Fate.REFUSED or isinstance(moved.error, PermissionError):
            self.denied = True
            self.notices.append(f"task {task_id} cannot be moved: {moved.error}")
        return bool(moved)

    def record(self, name: TaskName, error: Error, status: Status) -> EndedName:
        """The leader's own result for an attempt that no worker can speak for; written once. Errors: OSError.

        Written anew where the move that it was for was not made, and another one is to be made now.
        """
        ended = name.ended(self.store.writer)
        if self.recorded.get(ended.encode()) != (status, error):
            result = Result(
                task_id=name.id,
                attempt=name.attempt,
                worker_id=self.store.writer,
                status=status,
                completed_at=self.store.stamp(),
                error=error,
            )
            path = layout.join(layout.RESULTS, ended.encode())
            self.store.fs.write(path, codec.dump(result), durable=self.store.durable)
            self.recorded[ended.encode()] = (status, error)
        return ended

    def fail(self, place: Place, name: TaskName, error: Error, status: Status) -> bool:
        """End a task that no worker holds any more: the leader's result, then the move; True when it has ended."""
        try:
            ended = self.record(name, error, status)
        except OSError as trouble:
            self.tell(place.path, trouble)
            return False
        moved = self.store.move(place.path, layout.join(layout.FAILED, ended.encode()))
        if not self.went(moved, name.id):
            return False
        self.recorded.pop(ended.encode(), None)
        self.view.forget_place(place)
        self.view.settle(name.id, State.FAILED, layout.FAILED, ended.encode())
        self.ended(key(name.id))
        self.journal.note("FAILED", name.id, name.attempt, code=error.code, message=error.message)
        return True

    def ended(self, task_key: str) -> None:
        """A task ended: whoever waits for it is asked anew."""
        self.lanes.pop(task_key, None)
        self.deadlines.pop(task_key, None)
        self.backlog.remove(task_key)
        self.backlog.parent_changed(task_key, self.now)
