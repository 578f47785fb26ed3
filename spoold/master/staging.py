"""The lines of a batch on their way: written into the leader's door, then published by rename.

Law: a line is on record before its file is there, and until it is known whether it was published, since an error says
neither. A foreign entry under its name is passed over: it is never opened, and not ours to remove.
"""

from __future__ import annotations

from functools import partial

from spoold.master import doors
from spoold.master.desk import Desk
from spoold.master.place import waiting_place
from spoold.master.rejecting import take_away
from spoold.protocol import layout
from spoold.protocol.names import key
from spoold.rules.entry.batch import Line
from spoold.store import absence
from spoold.store.lane_moves import move_into_lane
from spoold.store.records import is_taken

# How many names are tried for a line in one step.
NAMES_TRIED = 100


class Staging:
    """The lines that are staged, by path."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self._written = 0

    def stage(self, desk: Desk, line: Line) -> str:
        """Write a line into this leader's door, under a name that it never uses twice; return its path.

        Errors: OSError, DoorShut.
        """
        tried = 0
        while True:
            desk.breathe()
            self._written += 1
            path = desk.door.at(f"{self._written}{doors.LINE}")
            self.lines[path] = line
            try:
                desk.store.fs.write(path, line.data, durable=desk.store.durable and desk.store.fs.remote)
            except FileNotFoundError:
                doors.check_open(desk)
                raise
            except OSError as error:
                tried += 1
                if not is_taken(error):
                    raise
                del self.lines[path]
                if tried == NAMES_TRIED:
                    raise
            else:
                return path

    def publish(self, desk: Desk, staged: str) -> None:
        """Make one line a task in waiting/. Errors: OSError."""
        line = self.lines[staged]
        file = line.name.encode()
        moved = move_into_lane(desk.store, "ADMITTED", staged, layout.WAITING, line.lane, file)
        if not moved:
            raise moved.error or OSError(f"{line.name.id}: publishing ended as {moved.fate}")
        del self.lines[staged]
        _admitted(desk, line, file)

    def resolve(self, desk: Desk) -> bool:
        """Remove staged files, then look which lines were published unseen: until then each may be. Errors: OSError.

        False while one could not be removed: a second file of its line would be one task too many.
        """
        for staged, line in list(self.lines.items()):
            if not take_away(desk, staged):
                continue
            file = line.name.encode()
            there = absence.stands(desk.store.fs, layout.waiting(line.lane, file))
            if there and not desk.view.known(line.name.id):
                _admitted(desk, line, file)
            del self.lines[staged]
        return not self.lines


def _admitted(desk: Desk, line: Line, file: str) -> None:
    desk.view.members.see(key(line.name.id), line.batch)
    place = waiting_place(line.lane, file)
    enlist = partial(desk.enlist, file, line.lane, line.task, line.name.delay_ms)
    desk.contained("new task", place, line.name, enlist)  # the other lines go on
    batch = {"batch": line.batch} if line.batch else {}
    desk.journal.note("ADMITTED", line.name.id, line.name.attempt, lane=line.lane, file=file, **batch)
