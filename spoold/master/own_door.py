"""The content of this leader's own door, so far as it knows.

Law: it can be listed again at any time. After a late reply may have changed it, it is in doubt until it is listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spoold.protocol import layout
from spoold.protocol.door import BatchName, DoorEntry, DoorName, OriginalName
from spoold.protocol.names import TaskName
from spoold.rules.entry.batch import Accepted
from spoold.store.door_files import is_watched


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
