"""How attempts ended, as the listings show it: the figures behind the alert of too many failures.

Law: of names alone. What a person cancelled did not fail, and the tasks that tell of alerts do not count: one that
fails would raise the next alert.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.master.desk import Desk
from spoold.master.health import counts
from spoold.master.place import Place
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_skipped, key, parse_moving, parse_returned
from spoold.protocol.request import Verb


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
