"""Carries out a rejection that sends work back: earlier tasks run again, then the rejected one asks anew.

Law: the rejected task gets its new ORDER by the last move of all. Until then the request counts as its answer, so it
does not start, and a leader that comes in between goes on with what is left.
May touch: tokens of the tasks that a redo names, in completed/ and failed/.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.master.reviving import revive
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_ended, parse_moving
from spoold.protocol.request import Request
from spoold.rules.gates import redo
from spoold.rules.gates.requested import Requested

_EVENTS = {State.COMPLETED: "REDONE", State.FAILED: "RETRIED"}


class Redoing:
    """told: the redos that are noted in this leader's journal."""

    def __init__(self) -> None:
        self._told: set[Request] = set()

    def refusal(self, desk: Desk, one: Requested) -> str:
        """Why a redo cannot be done; '' where it can."""
        return redo.refusal(one, {key(task): _seen(desk, task) for task, _ in one.redo})

    def is_undone(self, desk: Desk, one: Requested) -> bool:
        """Whether a redo of another round was never carried out."""
        return redo.is_undone(one, _seen(desk, one.redo[0][0]))

    def go_on(self, desk: Desk, place: Place, name: TaskName, one: Requested) -> bool:
        """Move what is left of it; True when the rejected task has its new ORDER. Errors: OSError."""
        self._tell(desk, one)
        for task in redo.left(one, {key(task): _seen(desk, task) for task, _ in one.redo}):
            desk.breathe()
            if not _again(desk, task):
                desk.step.doubt()  # another leader has moved it, or the share refuses: the next look shows which
                return False
        content = desk.task_at(place, name)
        if content is None:
            return False
        lane = place.directory.partition("/")[2]
        anew = replace(name, order=desk.orders.encode(desk.next_micros()))
        if not desk.to_waiting(place.path, anew, lane, content, "REDONE"):
            desk.doubt(key(name.id))
            return False
        return True

    def _tell(self, desk: Desk, one: Requested) -> None:
        if one.request not in self._told:
            self._told.add(one.request)
            said = {"by": one.by, "at": one.at, "reason": one.reason}
            known: dict[str, Any] = {field: text for field, text in said.items() if text}
            desk.journal.note("REDO", one.request.target, tasks=[task for task, _ in one.redo], **known)


def _seen(desk: Desk, task: str) -> redo.Seen | None:
    """Where a task is; None where it is archived or unknown."""
    place = desk.view.place(key(task))
    if place is None:
        return None
    if place.state in _EVENTS:
        ended = parse_ended(place.name)
        return None if ended is None else redo.Seen(ended.attempt, ended=True)
    moving = parse_moving(place.name)
    return None if moving is None else redo.Seen(moving.attempt, ended=False)


def _again(desk: Desk, task: str) -> bool:
    """Make an ended task wait again; True when it does. Errors: OSError."""
    place = desk.view.place(key(task))
    ended = None if place is None else parse_ended(place.name)
    if place is None or ended is None:
        return False
    try:
        with desk.faults.reading("file", place.path, task):
            content = desk.read_task(place.path)
    except BadFile as error:
        desk.report.notice(f"{task} cannot run again: {error}")
        return False
    except PermissionError as error:
        desk.tell(place.path, error)
        return False
    if content is None or not revive(desk, place.path, ended, content, _EVENTS[place.state]):
        return False
    desk.view.forget_place(place)
    return True
