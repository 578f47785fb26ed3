"""Files in ready/ that are no tasks: told in `warnings`, since no worker may ever open them.

The leader reads a waiting task that has conditions, and a worker reads each that it claims: both end one that is no
task as INVALID_TASK. In a lane that no worker serves, nobody reads a task.

Law: the leader reads a file in ready/ only where it has stood there from one relisting to the next, once, and a few
in each step, so a task that is taken in time costs no read. Nothing is moved: the worker that claims it ends it. One
that is wrong is read again at each relisting, since a person may have put a right one in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from spoold.master.desk import DAMAGED_MEND, OF_ONE_FILE_MEND, Desk
from spoold.master.place import Place
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import DamagedError

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
