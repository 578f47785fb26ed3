"""admitting/: one directory per leader and epoch, through which every task goes that names its own id.

Two leaders at once could admit two drops with one id, each not seeing the other's: two tokens. So a drop that could
be admitted twice first goes through the leader's own directory. The new leader finishes the drops of an earlier
leader's directory, once it has seen everything else.

Law: a new leader admits nothing before the directories of all earlier leaders are removed, or out of their reach.
After that, late moves of an earlier leader, or of the network on its behalf, find no directory to go through.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import replace

from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import reject, reject_directory, reject_irregular, says_the_same, take_away
from spoold.master.state.tree_view import Place
from spoold.master.tasks.scheduler import place_admitted
from spoold.protocol import codec, layout
from spoold.protocol.admission_names import parse_door, parse_standing
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import Mover, State
from spoold.protocol.names import COUNT_MAX, TaskName, is_unique, key, order_micros
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Admit, Known
from spoold.store import existence, mover
from spoold.store.leader_files import read_lease
from spoold.store.mover import Fate
from spoold.store.store import clear_directory, make_directory
from spoold.system.filesystem import NotRegularError

LINE = ".line"
LOCKED = 999_000_000
LOCKED_MEND = "its owner (or root) runs `chmod -R g+rwX %s`; then its drops are admitted within minutes"


class DoorShut(OSError):
    """This leader's own door is gone: another node leads, or a person removed it. A leader then starts anew."""

    def __init__(self, door: str) -> None:
        super().__init__(errno.ESTALE, os.strerror(errno.ESTALE), door)


def open_door(desk: Desk) -> None:
    """Make this leader's door and shut all others, taking over their contents. Errors: OSError."""
    make_directory(desk.store.fs, desk.door.path)
    shut_others(desk)
    look_behind(desk)


def shut_others(desk: Desk) -> None:
    """Shut every door but this leader's own. Errors: DoorShut when one belongs to a later leader; OSError when one
    could not be shut, after all others were.
    """
    open_still: OSError | None = None
    desk.report.unlock_all()
    for name in sorted(desk.store.fs.list(layout.ADMITTING)):
        door, path = parse_door(name), layout.join(layout.ADMITTING, name)
        if door is None or path == desk.door.path:
            continue
        if door.epoch > desk.epoch and _has_been_led(desk, door.epoch):
            raise DoorShut(desk.door.path)
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
    """Whether the token says so, which precedes any door of that epoch: another user can make a directory, too."""
    token = read_lease(desk.store.fs)
    return token is None or token.epoch >= epoch


def _shut(desk: Desk, door: str) -> None:
    denied = False

    def take(path: str) -> None:
        nonlocal denied
        name = path.rpartition("/")[2]
        if parse_standing(name) is None:
            denied = not take_away(desk, path) or denied
            return
        moved = desk.store.move(Mover.LEADER, "RECEIVED", path, desk.door.at(name))
        if isinstance(moved.error, PermissionError) and reject_directory(desk, path):
            return  # no drop; another user's entry may now have a meaningless name here, and goes with the door
        denied = isinstance(moved.error, PermissionError) or denied
        if moved.fate is Fate.NO_DIRECTORY:
            check_open(desk)

    try:
        if clear_directory(desk.store.fs, door, take):
            return
    except PermissionError:
        denied = True
    # Entries that are neither ours nor removable, such as a file that an NFS client still has open, go with the
    # directory: moving it away shuts the door as well.
    with contextlib.suppress(PermissionError):
        if not _holds_ours(desk, door) and reject_directory(desk, door):
            return
    if not (denied and _lock(desk, door)):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), door)


def _holds_ours(desk: Desk, door: str) -> bool:
    """Whether it holds drops on their way in; True if this user cannot find out."""
    try:
        return any(parse_standing(name) for name in existence.names_in(desk.store.fs, door))
    except PermissionError:
        return True


def _lock(desk: Desk, door: str) -> bool:
    """Shut a door that this user may not empty: no leader goes through one whose number no leader gives itself.

    Its drops wait there until its owner lets others in. False when that cannot be done either.
    """
    old = parse_door(door.rpartition("/")[2])
    assert old is not None
    if old.number < LOCKED:
        there = set(desk.store.fs.list(layout.ADMITTING))
        names = (replace(old, number=number).encode() for number in range(LOCKED, COUNT_MAX))
        new = layout.join(layout.ADMITTING, next(name for name in names if name not in there))
        if not mover.move(desk.store.fs, door, new):
            return False
        door = new
    desk.report.lock(f"{door}/ belongs to another user, and this node's may not empty it; {LOCKED_MEND % door}")
    return True


def check_open(desk: Desk) -> None:
    """Find out why this leader's own door was not found. Errors: DoorShut if it is gone or no directory; OSError."""
    if not existence.stands(desk.store.fs, desk.door.path) or desk.store.fs.stat(desk.door.path).kind != "dir":
        raise DoorShut(desk.door.path)


def look_behind(desk: Desk) -> None:
    """List this leader's own door. Errors: OSError, DoorShut."""
    desk.door.looked()
    try:
        names = desk.store.fs.list(desk.door.path)
    except (FileNotFoundError, NotADirectoryError):
        check_open(desk)
        raise
    for name in names:
        if (found := parse_standing(name)) is not None:
            desk.door.came(found)
    if not desk.door.batches:
        _remove_strays(desk, names)


def _remove_strays(desk: Desk, names: list[str]) -> None:
    """Remove staged lines that appeared after a write that seemed to fail: no batch is under way."""
    for name in names:
        if name.endswith(LINE):
            take_away(desk, desk.door.at(name))


def through(desk: Desk, drop: str, name: str) -> bool:
    """Move a drop into this leader's door; True when it is there. Errors: OSError, DoorShut."""
    moved = desk.store.move(Mover.LEADER, "RECEIVED", layout.join(layout.PENDING, drop), desk.door.at(name))
    if moved.fate is Fate.NO_DIRECTORY or isinstance(moved.error, NotADirectoryError):
        check_open(desk)
    if moved.fate in (Fate.UNKNOWN, Fate.NO_DIRECTORY):
        desk.door.doubt()  # it may still come in
    return desk.went(moved, drop)


def admit(desk: Desk, drop: str, admitted: Admit) -> None:
    """Admit the drop as a task. One whose id another drop may have goes through the leader's own door first.

    A drop without an id, or with an id that no other drop has, is admitted at most once as it is: for every leader,
    the source is this one name.
    """
    src = layout.join(layout.PENDING, drop)
    if admitted.task.id is not None and not is_unique(drop, admitted.task.id):
        file = admitted.name.encode()
        if not through(desk, drop, file):
            return
        desk.door.came(admitted.name)
        desk.view.settle(admitted.name.id, State.PENDING, desk.door.path, file)
        src = desk.door.at(file)
    if place_admitted(desk, src, admitted, drop):
        desk.door.left(admitted.name)


def finish(desk: Desk) -> None:
    """Admit each task in the door, or set it aside if its id is taken by now. Errors: OSError, DoorShut."""
    if desk.door.in_doubt:
        look_behind(desk)
    for name in desk.some(sorted(desk.door.half, key=TaskName.encode), "half"):
        if desk.faults.rests("task in the door", name.id):
            continue
        with desk.faults.handling("task in the door", name.id, name.id, name.attempt) as handling:
            _finish_one(desk, name.encode(), name)
        if handling.fault is not None and handling.fault.lasts:
            file = f"{name.id}.json"
            with desk.faults.handling("rejection of the task", name.id, name.id, name.attempt):
                if reject(desk, desk.door.at(name.encode()), file, handling.fault.bad_file(file)):
                    desk.door.left(name)


def _finish_one(desk: Desk, file: str, name: TaskName) -> None:
    place = Place(State.PENDING, desk.door.path, file)
    desk.orders.saw(order_micros(name.order))
    try:
        with desk.reading(place.path):
            data = existence.read(desk.store.fs, place.path)
    except OSError as error:
        if isinstance(error, NotRegularError) and reject_irregular(desk, place.path, f"{name.id}.json"):
            desk.door.left(name)
            return
        desk.tell(place.path, error)
        return
    if data is None:
        desk.door.left(name)
        if desk.view.place(key(name.id)) == place:
            desk.missing.miss(key(name.id))
        return
    try:
        task = codec.load_task(data, file)
        admit = Admit(name, admission.admit(task, name.order, name.id, desk.store.settings, file).lane, task)
    except BadFile as error:
        if reject(desk, place.path, f"{name.id}.json", error, data=data):
            desk.door.left(name)
        return
    if desk.known_elsewhere(name.id, place):
        _settle_duplicate(desk, place, name, codec.load(data, file), data)
        return
    desk.view.settle(name.id, State.PENDING, desk.door.path, file)
    if place_admitted(desk, place.path, admit, file):
        desk.door.left(name)


def _settle_duplicate(desk: Desk, place: Place, name: TaskName, new: object, data: bytes) -> None:
    same = says_the_same(desk, name.id, new)
    if same is None:
        return  # the other is moving just now: ask again in the next step
    verdict = admission.judge_duplicate(f"{name.id}.json", name.id, same=same)
    if isinstance(verdict, Known):
        existence.remove(desk.store.fs, place.path)
        desk.journal.note("DUPLICATE", name.id)
    elif not reject(desk, place.path, f"{name.id}.json", verdict.error, data=data):
        return
    desk.door.left(name)
    desk.step.change()
