"""Who holds locks: tasks that are ready or claimed, or may be, and reservations.

Law: as for limits: a task that the leader tried to move into ready/ holds its locks until listings show where it is
now. A claim with conditions whose file was not read yet may hold everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.master.placing import hold_one
from spoold.master.reservations import standing
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_task
from spoold.rules.locks.demand import Demand
from spoold.rules.locks.turns import turn_of

_MAY_RUN = (State.WAITING, State.READY, State.CLAIMED)


def count_locks(desk: Desk) -> None:
    """Count anew who holds locks. Moves of this step are then counted as they are chosen."""
    held: dict[str, Demand | None] = {k: demand for k, demand in _known(desk) if demand}
    held.update(dict.fromkeys(_unknown(desk)))
    reserved = desk.backlog.locks.book.reserved
    for name in standing(desk.view.requests):
        if name not in reserved or not reserved[name].over:
            held[name] = reserved[name].demand if name in reserved else None
    desk.backlog.locks.hold(held)
    desk.backlog.locks.see_ready(lambda task_key: _ready(desk, task_key) is not None)


def hold_back_clashing(desk: Desk) -> None:
    """Take back ready tasks that conflict with holders of which this leader did not know. Errors: OSError.

    Of two ready ones the one that would be later in line goes back; one that is claimed goes on.
    """
    locks = desk.backlog.locks
    for stranger in sorted(locks.strangers):
        done = True
        for other in locks.book.clashing(stranger):
            ready = [key for key in (stranger, other) if _ready(desk, key) is not None]
            if ready:
                later = max(ready, key=lambda key: turn_of(desk.view.where[key].name))
                done = _back(desk, later) and done
            if stranger in ready and _ready(desk, stranger) is None:
                break
        if done:
            locks.strangers.discard(stranger)


def _back(desk: Desk, task_key: str) -> bool:
    """Take a ready task back; whether that was done."""
    place = desk.view.where[task_key]
    hold_one(desk, place, desk.view.ready[place.directory.partition("/")[2]][place.name])
    return _ready(desk, task_key) is None


def _ready(desk: Desk, task_key: str) -> Place | None:
    place = desk.view.where.get(task_key)
    listed = place is not None and place.name in desk.view.ready.get(place.directory.partition("/")[2], {})
    return place if place is not None and place.state is State.READY and listed else None


def _known(desk: Desk) -> Iterator[tuple[str, Demand]]:
    for task_key, demand in desk.learned.demands.items():
        if _may_run(desk.view.where.get(task_key)):
            yield task_key, demand


def _unknown(desk: Desk) -> Iterator[str]:
    """Tasks with conditions, of which nothing is known but their names."""
    for task_key in (*desk.learned.unlearned, *desk.view.on_the_way, *desk.missing.keys):
        place = desk.view.where.get(task_key)
        if task_key in desk.learned.demands or place is None or not _may_run(place):
            continue
        name = parse_task(place.name)
        if name is not None and name.conditional and key(name.id) not in desk.backlog:
            yield task_key


def _may_run(place: Place | None) -> bool:
    """Whether a task that was seen there last may run. One that surely waits is in the backlog, and has no place."""
    return place is not None and place.state in _MAY_RUN
