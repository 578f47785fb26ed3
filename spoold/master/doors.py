"""admitting/: one directory per leader and epoch, through which every task goes that names its own id.

Two leaders at once could admit two drops with one id, each not seeing the other's: two tokens. So what could be
admitted twice goes through a directory of the leader's own first, and a new leader removes the directories of all
leaders before it. After that whatever those still do, or the network still does for them, finds no directory to go
through; and what stood in one is the new leader's to finish, once it has seen everything else.
"""

from __future__ import annotations

import contextlib
import errno
import os

from spoold.master.desk import Desk
from spoold.master.placing import place_admitted
from spoold.master.rejecting import reject, reject_directory, take_away
from spoold.master.view import Place
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_batch, parse_door, parse_task
from spoold.protocol.order import order_micros
from spoold.rules import admission
from spoold.rules.admission import Admit, Known
from spoold.store import absence
from spoold.store.lease import read_lease
from spoold.store.mover import Fate
from spoold.store.store import clear_directory, make_directory

LINE = ".line"


class DoorShut(OSError):
    """This leader's own door is gone: somebody else leads, or a person removed it. Who still leads begins anew."""

    def __init__(self, door: str) -> None:
        super().__init__(errno.ESTALE, os.strerror(errno.ESTALE), door)


def open_door(desk: Desk) -> None:
    """Make this leader's door and shut all others, taking over what stood in them. Errors: OSError."""
    make_directory(desk.store.fs, desk.door)
    shut_others(desk)
    look_behind(desk)


def shut_others(desk: Desk) -> None:
    """Shut every door but this leader's own. Errors: DoorShut when a later leader's is among them; OSError when one
    could not be shut, after all others were.
    """
    open_still: OSError | None = None
    for name in sorted(desk.store.fs.list(layout.ADMITTING)):
        door, path = parse_door(name), layout.join(layout.ADMITTING, name)
        if door is None or path == desk.door:
            continue
        if door.epoch > desk.epoch and _has_been_led(desk, door.epoch):
            raise DoorShut(desk.door)
        try:
            if desk.store.fs.stat(path).kind == "dir":
                _shut(desk, path)
            else:
                take_away(desk, path)
        except DoorShut:
            raise
        except OSError as error:
            open_still = error
    if open_still is not None:
        raise open_still


def _has_been_led(desk: Desk, epoch: int) -> bool:
    """Whether the token says so, which comes before any door of that epoch: others may make a directory, too."""
    token = read_lease(desk.store.fs)
    return token is None or token.epoch >= epoch


def _shut(desk: Desk, door: str) -> None:
    def take(path: str) -> None:
        name = path.rpartition("/")[2]
        if parse_task(name) is None and parse_batch(name) is None:
            take_away(desk, path)
        elif desk.store.move(path, layout.join(desk.door, name)).fate is Fate.NO_DIRECTORY:
            check_open(desk)

    if clear_directory(desk.store.fs, door, take):
        return
    # What is neither ours nor to be removed, such as a file that an NFS client still has open, goes with the
    # directory: to move it away shuts the door as well.
    ours = any(parse_task(name) or parse_batch(name) for name in absence.names_in(desk.store.fs, door))
    if ours or not reject_directory(desk, door):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), door)


def check_open(desk: Desk) -> None:
    """Find out why this leader's own door was not found. Errors: DoorShut if it is gone; OSError."""
    if not absence.stands(desk.store.fs, desk.door):
        raise DoorShut(desk.door)


def look_behind(desk: Desk) -> None:
    """List what stands in this leader's own door. Errors: OSError, DoorShut."""
    desk.door_in_doubt = False
    try:
        names = desk.store.fs.list(desk.door)
    except FileNotFoundError:
        check_open(desk)
        raise
    for name in names:
        task, batch = parse_task(name), parse_batch(name)
        if task is not None:
            desk.half.add(name)
        elif batch is not None:
            desk.batches.add(batch)
    if not desk.batches:
        _remove_strays(desk, names)


def _remove_strays(desk: Desk, names: list[str]) -> None:
    """Staged lines that turned up though their writing was not seen to succeed: no batch is under way."""
    for name in names:
        if name.endswith(LINE):
            with contextlib.suppress(FileNotFoundError):
                desk.store.fs.unlink(layout.join(desk.door, name))


def through(desk: Desk, drop: str, name: str) -> bool:
    """Move a drop into this leader's door; True when it is there. Errors: OSError, DoorShut."""
    moved = desk.store.move(layout.join(layout.PENDING, drop), layout.join(desk.door, name))
    if moved.fate is Fate.NO_DIRECTORY:
        check_open(desk)
    if moved.fate in (Fate.UNKNOWN, Fate.NO_DIRECTORY):
        desk.door_in_doubt = True  # it may come in yet
    return desk.went(moved, drop)


def finish(desk: Desk) -> None:
    """Admit what stands in the door, or put it aside if its id is taken by now. Errors: OSError, DoorShut."""
    if desk.door_in_doubt:
        look_behind(desk)
    for file in sorted(desk.half):
        desk.breathe()
        name = parse_task(file)
        assert name is not None
        _finish_one(desk, file, name)


def _finish_one(desk: Desk, file: str, name: TaskName) -> None:
    place = Place(State.PENDING, desk.door, file)
    desk.last_micros = max(desk.last_micros, order_micros(name.order))
    try:
        data = absence.read(desk.store.fs, place.path)
    except OSError as error:
        desk.tell(place.path, error)
        return
    if data is None:
        desk.half.discard(file)
        if desk.view.place(key(name.id)) == place:
            desk.missing.add(key(name.id))
        return
    try:
        task = codec.load_task(data, file)
        admit = Admit(name, admission.admit(task, name.order, name.id, desk.store.settings, file).lane, task)
    except BadFile as error:
        if reject(desk, place.path, f"{name.id}.json", error, data=data):
            desk.half.discard(file)
        return
    if desk.known_elsewhere(name.id, place):
        _settle_duplicate(desk, place, name, codec.load(data, file), data)
        return
    desk.view.settle(name.id, State.PENDING, desk.door, file)
    if place_admitted(desk, place.path, admit, file):
        desk.half.discard(file)


def _settle_duplicate(desk: Desk, place: Place, name: TaskName, new: object, data: bytes) -> None:
    same = desk.says_the_same(name.id, new)
    if same is None:
        return  # the other is moving just now: ask again in the next step
    verdict = admission.judge_duplicate(f"{name.id}.json", name.id, same=same)
    if isinstance(verdict, Known):
        absence.remove(desk.store.fs, place.path)
        desk.journal.note("DUPLICATE", name.id)
    elif not reject(desk, place.path, f"{name.id}.json", verdict.error, data=data):
        return
    desk.half.discard(place.name)
    desk.busy = True
