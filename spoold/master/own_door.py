"""The content of this leader's own door, so far as it knows.

Law: it can be listed again at any time. After a late reply may have changed it, it is in doubt until it is listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.protocol import layout
from spoold.protocol.door import BatchName, DoorName, OriginalName
from spoold.rules.entry.batch import Accepted


@dataclass(slots=True)
class OwnDoor:
    """A directory below admitting/ and the names in it.

    half: task files that are to be admitted; originals: drops whose copies become tasks; batches: those under way;
    kept: batches all of whose lines are tasks, and whose writer may go on; promised: the findings in each batch under
    way that this leader accepted itself; in_doubt: more may have come in.
    """

    path: str
    half: set[str] = field(default_factory=set)
    originals: set[OriginalName] = field(default_factory=set)
    batches: set[BatchName] = field(default_factory=set)
    kept: set[BatchName] = field(default_factory=set)
    promised: dict[BatchName, Accepted] = field(default_factory=dict)
    in_doubt: bool = False

    def at(self, name: str) -> str:
        """Return the path of a name in it."""
        return layout.join(self.path, name)

    def open_drops(self) -> int:
        """Return how many drops stand here that are not tasks yet."""
        return len(self.half) + len(self.originals) + len(self.batches)


def own_door(epoch: int, writer: str, number: int) -> OwnDoor:
    """Return the door of a leader that opens its number-th in this epoch."""
    return OwnDoor(layout.join(layout.ADMITTING, DoorName(epoch, writer, number).encode()))
