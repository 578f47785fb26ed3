"""Drops and tokens whose id belongs to a task already: an identical drop is a no-op, any other is refused.

Law: nothing is decided in doubt: while the other task moves or cannot be read, the drop waits. A damaged task counts
as different, since its content is unknown.
"""

from __future__ import annotations

from typing import Any

from spoold.master.archived import still_archived
from spoold.master.desk import Desk
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Admit, Known, Reject
from spoold.store import absence
from spoold.store.archive import find_archived
from spoold.store.regular import regular
from spoold.system.filesystem import NotRegularError


def says_the_same(desk: Desk, task_id: str, new: Any, *, alone: bool = True) -> bool | None:
    """Whether the task with that id says the same as `new`, wherever the task is. Errors: OSError.

    None when it is moving just now. A damaged file counts as different: its content is unknown. alone: the new drop
    is removed if it says the same, so where a server may have forgotten the other one, a listing has to show it.
    """
    place = desk.view.place(key(task_id))
    path = find_archived(desk.store.fs, task_id) if place is None else place.path
    try:
        if path is None:
            return None
        with desk.faults.reading("file", path, task_id):
            with regular(path):
                data = desk.store.fs.read(path)
            same = codec.same_content(new, codec.load(data, path))
        doubtful = same and alone and desk.store.fs.forgets
        return None if doubtful and not absence.stands(desk.store.fs, path) else same
    except FileNotFoundError:
        return None
    except (BadFile, NotRegularError):
        return False
    except PermissionError as error:
        desk.tell(path or task_id, error)
        return None


def judge(desk: Desk, drop: str, admit: Admit, new: Any) -> Known | Reject | None:
    """Judge a drop whose id is taken. None: the other task is moving just now, ask again. Errors: OSError."""
    told, task_id = len(desk.report.notices), admit.name.id
    same = says_the_same(desk, task_id, new)
    if same is None and desk.view.place(key(task_id)) is None:
        still_archived(desk.store.fs, task_id, desk.view.blocked)
    if same is None and (len(desk.report.notices) > told or layout.bucket(task_id) in desk.view.blocked):
        desk.step.deny()  # this user may not read the other one: no later step shows more
    return None if same is None else admission.judge_duplicate(drop, admit.name.id, same=same)


def has_completed(desk: Desk, task_id: str) -> bool:
    """Whether a task of this id has completed and was not sent back: any other token of it is a copy that a
    person restored, unless the server forgot the commit, so that is looked up. Errors: OSError.
    """
    place, ended = desk.view.place(key(task_id)), desk.view.archived.state(key(task_id))
    if place is not None and place.state is State.COMPLETED and absence.stands(desk.store.fs, place.path):
        return True
    return ended is State.COMPLETED and still_archived(desk.store.fs, task_id, desk.view.blocked)
