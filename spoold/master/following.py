"""Takes what has changed since the last listings into the desk.

Law: listings alone say where a task is; nothing is forgotten of a look that failed halfway.
"""

from __future__ import annotations

from spoold.master.cadence import wanted_now
from spoold.master.desk import Desk
from spoold.master.learning import learn
from spoold.master.tallying import tally
from spoold.protocol.lifecycle import State


def follow(desk: Desk) -> None:
    """List the polled directories and take in the changes. Errors: OSError, and then nothing of it is forgotten."""
    wanted = wanted_now(desk)
    changes = desk.view.refresh(desk.store.fs, wanted)
    desk.step.looked(wanted, changed=changes.any)
    desk.undid(changes.undone)
    for task_key in changes.came:
        with desk.faults.handling("move of the task", task_key, task_key):
            _moved(desk, task_key)
    tally(desk, changes.came)
    for task_key in changes.ended:
        desk.ended(task_key)
    for task_key in changes.revived:
        with desk.faults.handling("return of the task", task_key, task_key):
            desk.view.members.doubt(task_key)
            desk.backlog.parent_changed(task_key, desk.step.now)
    desk.missing.miss(*changes.missing)
    learn(desk, changes.came)


def _moved(desk: Desk, task_key: str) -> None:
    lane, asked = desk.learned.lanes.get(task_key), desk.learned.asked_by(task_key)
    desk.ends.see(desk.view.where.get(task_key), lane, asked)
    desk.backlog.remove(task_key)
    desk.missing.found(task_key)
    place = desk.view.where.get(task_key)
    if place is not None and place.state not in (State.COMPLETED, State.FAILED):
        desk.view.members.came(task_key, place.name)
