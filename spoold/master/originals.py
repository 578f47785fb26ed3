"""Single drops that were not published by rename: a copy becomes the task, and the file itself is removed.

Law: the file of a task was written by spoold alone. A program goes on writing into a file that it has open, wherever
it is moved. And an NFS client keeps the file of a name that it has looked up, for a minute: a program that uses the
name of its last drop again writes into that very file. So a drop stands in the leader's door as an original, while a
copy of the judged content becomes the task. Then the original is read once more. If it says the same it is removed,
and the next program that uses its name makes a new file. If not, it goes back to pending/, and is judged as any drop.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import count

from spoold.master import anew, doors, duplicates
from spoold.master.desk import Desk
from spoold.master.durability import Signature, signature
from spoold.master.place import Place
from spoold.master.placing import place_admitted
from spoold.master.rejecting import reject_irregular
from spoold.protocol import codec
from spoold.protocol.door import OriginalName
from spoold.protocol.drop import id_in
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.order import order_micros
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Admit
from spoold.store import absence
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import NotRegularError

# How long (s) until the next look at an original that a program has open, or that the leader cannot read.
LOOK_S = 1.0
BLANK = b" \t\r\n"


@dataclass(slots=True)
class _Copy:
    """A future task: the judged content, and the original that it was copied from; None while that is in pending/."""

    drop: str
    admit: Admit
    said: Signature
    original: OriginalName | None = None


class Originals:
    """The originals in this leader's door, and their copies, until both are settled."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._copies: dict[str, _Copy] = {}
        self._said: dict[OriginalName, Signature] = {}
        self._look_at: dict[OriginalName, float] = {}

    def next_due(self) -> float | None:
        """When (monotonic, s) to look at the next original."""
        return min(self._look_at.values(), default=None)

    def step(self, desk: Desk) -> None:
        """Go on with unsettled copies and originals, also those of the leader before. Errors: OSError, DoorShut."""
        for path, copy in desk.some(list(self._copies.items()), "copies"):
            with desk.faults.handling("copy of drop", copy.drop):
                self._go_on(desk, path, copy)
        unplaced = {copy.original for copy in self._copies.values()}
        now = desk.step.now.monotonic
        due = [name for name in desk.door.originals - unplaced if self._look_at.get(name, now) <= now]
        for name in desk.some(sorted(due, key=lambda original: original.order), "originals"):
            with desk.faults.handling("original", name.encode()):  # it stays, and is looked at again
                self._compare(desk, name)

    def _go_on(self, desk: Desk, path: str, copy: _Copy) -> None:
        if copy.original is None:
            if _removed(desk, path):
                del self._copies[path]
        elif absence.stands(desk.store.fs, path):
            self._place(desk, path, copy)
        else:
            self._placed_late(desk, path, copy)

    def copy(self, desk: Desk, drop: str, admit: Admit, data: bytes, *, durable: bool) -> str | None:
        """Write a copy of a drop into this leader's door, under a name that it never uses twice; return its path.

        None, with a notice, when that is refused. Errors: OSError, DoorShut.
        """
        path = desk.door.at(f"{next(self._numbers)}.single{doors.LINE}")
        # Recorded before it is there: after an error it may be there all the same.
        self._copies[path] = _Copy(drop, admit, _said_in(data))
        try:
            desk.store.fs.write(path, data, durable=durable)
        except (FileNotFoundError, NotADirectoryError):
            doors.check_open(desk)
            raise
        except OSError as error:
            full = classify(error) is Meaning.FULL
            problem = "waits for room on the share" if full else "cannot be copied, and is tried again"
            desk.report.notice(f"pending/{legible(drop)} {problem}: {error.strerror}")
            return None
        return path

    def admit(self, desk: Desk, path: str) -> None:
        """Move the drop of this copy into the door, and make the copy a task. Errors: OSError, DoorShut."""
        copy = self._copies[path]
        order = copy.admit.name.order
        name = OriginalName(order, admission.settle(copy.drop, order_micros(order), desk.epoch)[1])
        if not doors.through(desk, copy.drop, name.encode()):
            return  # the next step removes the copy
        copy.original = name
        desk.door.came(name)
        desk.view.settle(copy.admit.name.id, State.PENDING, *path.rsplit("/", 1))
        self._place(desk, path, copy)

    def _place(self, desk: Desk, path: str, copy: _Copy) -> None:
        if copy.original is not None and place_admitted(desk, path, copy.admit, copy.drop):
            del self._copies[path]
            self._said[copy.original] = copy.said
            self._compare(desk, copy.original)

    def _placed_late(self, desk: Desk, path: str, copy: _Copy) -> None:
        """The copy is not in the door any more: a move that seemed to fail was made. A listing will show it."""
        del self._copies[path]
        task_key = key(copy.admit.name.id)
        if desk.view.place(task_key) == Place(State.PENDING, *path.rsplit("/", 1)):
            desk.missing.miss(task_key)

    def _compare(self, desk: Desk, name: OriginalName) -> None:
        """Remove an original that says the same as its task; bring back one that does not."""
        fs, path = desk.store.fs, desk.door.at(name.encode())
        self._look_at[name] = desk.step.now.monotonic + LOOK_S
        try:
            with contextlib.suppress(FileNotFoundError):  # it is gone, or seems so: the next call lists the door
                if fs.has_writer(path):
                    return
            data = absence.read(fs, path, desk.store.settings.drop.max_bytes + 1)
        except FileNotFoundError:
            return  # a listing shows it, but reading does not: its content is unknown
        except NotRegularError:
            if not reject_irregular(desk, path, f"{name.stem}.json"):
                return
            data = None
        except OSError as error:
            desk.tell(path, error)
            return
        if data is not None:
            same = self._became(desk, name, data)
            if same is None:
                return
            if not (_removed(desk, path) if same else anew.judge_anew(desk, path, f"{name.stem}.json")):
                return
            desk.step.change()
        desk.door.left(name)
        self._said.pop(name, None)
        del self._look_at[name]

    def _became(self, desk: Desk, name: OriginalName, data: bytes) -> bool | None:
        """Whether a task says the same as an original does by now; None while that is unknown. Errors: OSError."""
        said = self._said.get(name)
        if said is not None:
            return said == _said_in(data)
        verdict = admission.judge_content(name.prefix, data, name.order, name.prefix, desk.store.settings)
        if not isinstance(verdict, Admit) or not desk.view.known(verdict.name.id):
            return False
        return duplicates.says_the_same(desk, verdict.name.id, codec.load(data, name.prefix))


def _removed(desk: Desk, path: str) -> bool:
    """Remove it; True when it is gone by now. One that cannot be removed stops nothing else. Errors: OSError."""
    try:
        absence.remove(desk.store.fs, path)
    except OSError as error:
        desk.tell(path, error)
        return False
    return True


def wanted(desk: Desk, drop: str, admit: Admit) -> bool:
    """Whether a program may write into this drop after its admission. Not over SMB, whose clients open files by name
    and block moves of open files. A drop of ours was published by rename, under a name that is used once.
    """
    return not desk.store.fs.forgets and (admit.task.id is None or id_in(drop) != admit.task.id)


def _said_in(data: bytes) -> Signature:
    return signature(data.strip(BLANK))
