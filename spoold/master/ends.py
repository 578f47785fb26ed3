"""The attempts whose end a leader has seen and that the feed has not handed on yet, oldest first.

Law: noted where the view changes, from names alone. Nothing is noted unless there is a subscriber.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from spoold.master.place import Place
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_returned
from spoold.rules.scheduling.spending import Asked


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
