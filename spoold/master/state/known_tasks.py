"""What a leader knows of single tasks beyond their places: metadata, lost tokens, ended attempts.

Law: only `listing.task_metadata` and the leader's own moves write here, and all of it can be read from the tasks
again. A task is not gone before several listings in a row have shown it nowhere; `listing.refresh` decides that.
Until then its id stays taken and it counts for every limit that it may use. Ends are noted where the view changes,
from names alone, and only for a subscriber.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from spoold.master.state.tree_view import Place
from spoold.protocol.amount import amount, some
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_returned
from spoold.rules.gates.budget_gate import NAME as BUDGET
from spoold.rules.gates.budget_usage import NOTHING, Asked
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.lock_gate import NAME
from spoold.rules.gates.lock_holders import NO_LOCKS, Demand

# The failures whose beginnings are remembered.
ORIGINS = 10_000


@dataclass(slots=True)
class Learned:
    """By key of a task. lanes: of ready or claimed tasks; deadlines: wall time (s), of tasks that have one; asked:
    what tasks with conditions say of budgets, and demands: what they lock, once they were read; unlearned: since when
    (monotonic, s) lane and content are to be looked up; unsure: those of them that were read, and may run as another
    type than their own, which their workers have not said yet; also: more lanes of which a lost claim may have been.
    settled: names in failed/ that no power cut takes back, as `dependents` found. origins: by name in failed/, the
    task with which that failure began. shares: of tasks that another leader admitted, once they were read.
    """

    lanes: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    unlearned: dict[str, float] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    also: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    shares: dict[str, str] = field(default_factory=dict)

    def learn_lane(self, task_key: str, lane: str) -> None:
        """Note the lane of a task that is ready or claimed."""
        self.lanes[task_key] = lane

    def learn_lanes(self, task_key: str, lanes: Sequence[str]) -> None:
        """Note the lanes of which a lost claim may have been, that of its own type first."""
        self.lanes[task_key], self.also[task_key] = lanes[0], tuple(lanes[1:])

    def all_lanes(self, task_key: str) -> tuple[str, ...]:
        """The lanes of which a task may be that is ready or claimed; '' where none is known."""
        return self.lanes.get(task_key, ""), *self.also.get(task_key, ())

    def learn_deadline(self, task_key: str, moment: float) -> None:
        """Note a task's deadline (wall time, s)."""
        self.deadlines[task_key] = moment

    def learn_asked(self, task_key: str, asked: Asked) -> None:
        """Note what a task with conditions says of budgets."""
        self.asked[task_key] = asked

    def asked_by(self, task_key: str) -> Asked | None:
        """What a task says of budgets; None while that is to be looked up."""
        return None if task_key in self.unlearned else self.asked.get(task_key, NOTHING)

    def learn_demand(self, task_key: str, conditions: Conditions) -> None:
        """Note what a task locks that is ready or claimed, or may be before long."""
        if conditions is not NO_CONDITIONS:
            asked = conditions.asks(NAME)
            self.demands[task_key] = asked if isinstance(asked, Demand) else NO_LOCKS

    def conditions(self, task_key: str) -> Conditions:
        """What is known of the budgets and locks of a task that is ready."""
        known = ((BUDGET, self.asked.get(task_key)), (NAME, self.demands.get(task_key)))
        return Conditions(more=tuple((gate, asked) for gate, asked in known if asked))

    def learn_no_demand(self, task_key: str) -> None:
        """Note that a task locks nothing."""
        self.demands[task_key] = NO_LOCKS

    def waits(self, task_key: str, deadline: float | None) -> None:
        """Note that a task waits, where the backlog knows its lane and locks; its deadline stays of interest."""
        self.lanes.pop(task_key, None)
        self.also.pop(task_key, None)
        self.demands.pop(task_key, None)
        if deadline is not None:
            self.deadlines[task_key] = deadline

    def look_up(self, task_key: str, now: float) -> None:
        """Note that lane and deadline of a task are to be looked up. now: monotonic, s; the first time counts."""
        self.unlearned.setdefault(task_key, now)

    def looked_up(self, task_key: str, now: float) -> float:
        """Note that nothing more is to be looked up of a task; return since when (monotonic, s) it was."""
        self.unsure.discard(task_key)
        return self.unlearned.pop(task_key, now)

    def doubt_type(self, task_key: str) -> None:
        """Note that a claim was read, and that its worker has not said yet as which type it runs."""
        self.unsure.add(task_key)

    def may_run_in(self, lane: str) -> bool:
        """Whether a ready or claimed task may be of this lane."""
        return bool(self.unlearned) or lane in self.lanes.values()

    def learn_origin(self, file: str, origin: str) -> None:
        """Note with which task a failure began. Of too many all are forgotten: their records say it, too."""
        if len(self.origins) >= ORIGINS:
            self.origins.clear()
        self.origins[file] = origin

    def learn_share(self, task_key: str, share: str) -> None:
        """Note of which share a task is."""
        self.shares[task_key] = share

    def forget_shares(self) -> None:
        """Forget of which shares tasks are: the settings say otherwise now."""
        self.shares.clear()

    def forget(self, task_key: str) -> None:
        """Forget a task that has ended."""
        self.lanes.pop(task_key, None)
        self.also.pop(task_key, None)
        self.demands.pop(task_key, None)
        self.deadlines.pop(task_key, None)
        self.asked.pop(task_key, None)
        self.shares.pop(task_key, None)


# Tasks whose place is in doubt: they seem to have left it, and were seen at no other.


# So many vanished tasks are remembered, and so many named.
REMEMBERED, NAMED = 1000, 3


@dataclass(slots=True)
class Missing:
    """keys: of those tasks; vanished: how many were gone in the end; gone: the last of these, by key, with their last
    place and the time (monotonic, s); doubts: listings in a row that did not show a task, by key.
    """

    keys: set[str] = field(default_factory=set)
    vanished: int = 0
    gone: dict[str, tuple[str, float]] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys)

    def miss(self, *keys: str) -> None:
        """Note tasks that have left their place and were seen at no other."""
        self.keys.update(keys)

    def nowhere(self, task_key: str) -> int:
        """Count one more listing that does not show the task; return how many there were in a row."""
        self.doubts[task_key] = self.doubts.get(task_key, 0) + 1
        return self.doubts[task_key]

    def believe(self, task_key: str, path: str, now: float) -> None:
        """Count the task as gone. path: where it was last; now: monotonic, s."""
        self.found(task_key)
        self.vanished += 1
        self.gone[task_key] = (path, now)
        if len(self.gone) > REMEMBERED:
            del self.gone[next(iter(self.gone))]

    def warnings(self, since: float, known: Callable[[str], bool]) -> list[str]:
        """Return the warning for people about tasks that vanished.

        since: those that vanished earlier (monotonic, s) are forgotten. known: whether a task has this key now.
        """
        self.gone = {task: (path, at) for task, (path, at) in self.gone.items() if at >= since and not known(task)}
        if not self.gone:
            return []
        were = some([f"{task} (it was {path})" for task, (path, _) in self.gone.items()], NAMED)
        said = f"{amount(len(self.gone), 'task')} vanished, since another program removed the file: {were}"
        return [f"{said}. Submit them again; `spool history ID` tells what is known of one"]

    def found(self, task_key: str) -> None:
        """Note that the task was found after all."""
        self.keys.discard(task_key)
        self.doubts.pop(task_key, None)


# The attempts whose end a leader has seen and that the feed has not handed on yet, oldest first.


@dataclass(frozen=True, slots=True)
class End:
    """An attempt that has ended. kind: the type of its task, None where it is unknown; final: it committed the task,
    so a record must be there (an attempt that was handed back may have none). asked: what its task says of budgets;
    None where that is unknown.
    """

    name: EndedName
    kind: str | None = None
    final: bool = True
    asked: Asked | None = None


@dataclass(slots=True)
class Ends:
    """wanted: whether there is a subscriber; queue: the ends seen since then; unsaved: the keys of tasks with an end
    that is in no checkpoint yet; unread: whether it is not known yet what the last checkpoint covers.
    """

    wanted: bool = False
    queue: deque[End] = field(default_factory=deque)
    unsaved: set[str] = field(default_factory=set)
    unread: bool = False

    def see(self, place: Place | None, lane: str | None, asked: Asked | None = None) -> None:
        """Note that a token came to this place. lane: its lane before, if that is known; asked: as in `End`."""
        end = end_at(place, lane) if self.wanted and place is not None else None
        if end is not None:
            self.queue.append(replace(end, asked=asked))
            self.unsaved.add(key(end.name.id))

    def expect(self, ends: Iterable[End]) -> None:
        """From now on note all ends for a subscriber; these come first."""
        self.wanted, self.unread, self.queue = True, False, deque(ends)
        self.saved()

    def wait(self) -> None:
        """Note that it is not known yet what the last checkpoint covers."""
        self.unread = True

    def needs(self, task_key: str) -> bool:
        """Whether the records of the task must stay in results/: an end of it may be in no checkpoint."""
        return self.unread or task_key in self.unsaved

    def saved(self) -> None:
        """Ends that have left the queue are in a checkpoint."""
        self.unsaved = {key(end.name.id) for end in self.queue}


def end_at(place: Place, lane: str | None = None) -> End | None:
    """Return the attempt that ended by a token's move to this place; None where no attempt ends."""
    kind = kind_in(lane) or None if lane is not None else None
    if place.state in (State.COMPLETED, State.FAILED):
        ended = parse_ended(place.name)
        return None if ended is None else End(ended, kind)
    returned = parse_returned(place.name) if place.state is State.RETURNED else None
    if returned is None or returned[0].attempt < 2:
        return None
    task, decider = returned
    return End(EndedName(task.id, task.attempt - 1, decider), kind, final=False)
