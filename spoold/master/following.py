"""Takes what has changed since the last listings into the desk.

Law: listings alone say where a task is; nothing is forgotten of a look that failed halfway.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.master.cadence import wanted_now
from spoold.master.desk import Desk
from spoold.master.health import counts
from spoold.master.learning import learn
from spoold.master.place import Place
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_skipped, key, parse_moving, parse_returned
from spoold.protocol.request import Verb


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


# How attempts ended, as the listings show it: the figures behind the alert of too many failures.


def tally(desk: Desk, came: Iterable[str]) -> None:
    """Note the ends among the tasks that came to a new place."""
    cancelled: set[str] | None = None
    for task_key in came:
        place = desk.view.where.get(task_key)
        if place is None or not counts(desk.learned.lanes.get(task_key), desk.store.settings.alerts):
            continue
        if place.state is State.FAILED and cancelled is None:
            cancelled = {key(r.target) for r in desk.view.requests if r.verb is Verb.CANCEL}
        with desk.faults.handling("end to count of the task", task_key, task_key):
            _count(desk, task_key, place, cancelled or set())


def _count(desk: Desk, task_key: str, place: Place, cancelled: set[str]) -> None:
    outcomes, now = desk.health.outcomes, desk.step.now.monotonic
    if place.state in (State.COMPLETED, State.FAILED):
        failed: bool | None = place.state is State.FAILED
        if failed:
            failed = None if task_key in cancelled or is_skipped(place.name) else True
        outcomes.ended(now, task_key, failed=failed)
    elif place.state is State.RETURNED:
        if (returned := parse_returned(place.name)) is not None:
            outcomes.returned(now, task_key, returned[0].failures + returned[0].crashes)
    elif (name := parse_moving(place.name)) is not None:
        outcomes.charged(task_key, name.failures + name.crashes)
