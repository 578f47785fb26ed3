"""The leader's questions: a task whose approval is all that it waits for is put before people, and its time may end.

Law: a question is a file, so that the next leader goes on with its time to answer. At most ASKED_MAX stand at once,
since leaders and workers list control/: the next task is asked about when one was answered.
May touch: questions and answers in control/.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.protocol.amount import length
from spoold.protocol.approval import REJECT, Approval
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key
from spoold.protocol.order import base36
from spoold.protocol.request import Request, Verb
from spoold.rules.gates.approval import asked_of, expired
from spoold.rules.gates.requested import Requested, answer_of, decision, question
from spoold.rules.scheduling.entry import Entry
from spoold.store import control
from spoold.system.errnos import Meaning, classify

ASKED_MAX = 256
NOBODY = "nobody"


class Questions:
    """unasked: keys of tasks whose question does not stand yet; ended: questions whose end was noted."""

    def __init__(self) -> None:
        self._unasked: dict[str, None] = {}
        self._ended: set[Request] = set()
        self._numbers = itertools.count()

    def over(self, desk: Desk, place: Place, name: TaskName, asked: Requested, requests: list[Requested]) -> bool:
        """Whether nobody need answer a question any more."""
        if asked.attempt is not None:
            return name.attempt > asked.attempt
        entry = desk.backlog.get(key(name.id))
        approval = None if entry is None else asked_of(entry.conditions)
        if approval is None or place.state is not State.WAITING:
            return True
        return question(requests, name.order) != asked or decision(requests, approval, name.order) is not None

    def step(self, desk: Desk, standing: list[Requested]) -> None:
        """Ask what is not asked yet, and end questions whose time is over. Errors: OSError."""
        asked = [one for one in standing if one.request.verb is Verb.ASK and one.attempt is None]
        self._ended &= {one.request for one in asked}
        self._unasked |= dict.fromkeys(desk.backlog.parked.take("approval", ASKED_MAX))
        try:
            for one in asked:
                self._expire(desk, one)
            self._ask(desk, ASKED_MAX - len(asked))
        except OSError as error:
            if classify(error) is not Meaning.FULL:  # on a full share all other work goes on
                raise

    def tell(self, desk: Desk, given: Requested, choices: tuple[str, ...]) -> None:
        """Note an answer that counts, once by each leader."""
        rejected = given.request.verb is Verb.REJECT
        event = "ANSWERED" if given.about else "APPROVED"
        said = {"by": given.by, "at": given.at, "reason": given.reason, "question": given.about}
        answer = {"rejected": True} if rejected else {"answer": answer_of(given, choices)}
        known: dict[str, Any] = {name: text for name, text in said.items() if text}
        desk.journal.note(event, given.request.target, **answer, **known)

    def _ask(self, desk: Desk, room: int) -> None:
        for task_key in list(self._unasked):
            entry = desk.backlog.get(task_key)
            if entry is None or not desk.backlog.parked.at("approval", task_key):
                del self._unasked[task_key]
                continue
            if room <= 0:
                return
            approval = asked_of(entry.conditions)
            standing = desk.backlog.parked.requested.get(task_key, ())
            if approval is not None and question(standing, entry.name.order) is None:
                desk.breathe()
                self._put(desk, entry, approval)
                room -= 1
            del self._unasked[task_key]

    def _put(self, desk: Desk, entry: Entry, approval: Approval) -> None:
        until = None
        if approval.expires_s is not None:
            until = _moment(desk.step.now.wall + approval.expires_s)
        self._post(desk, entry, Verb.ASK, until=until, ask=approval.ask, choices=approval.choices)
        known: dict[str, Any] = {"until": until.isoformat().replace("+00:00", "Z")} if until is not None else {}
        detail = {"ask": approval.ask, "choices": list(approval.choices), **known}
        desk.journal.note("APPROVAL_ASKED", entry.name.id, entry.name.attempt, **detail)

    def _expire(self, desk: Desk, asked: Requested) -> None:
        """End a question whose time is over; the gate itself refuses a task that this rejects."""
        entry = desk.backlog.get(key(asked.request.target))
        if asked.request in self._ended or entry is None or not expired(asked, desk.step.now.wall):
            return
        approval, standing = asked_of(entry.conditions), desk.backlog.parked.requested.get(key(entry.name.id), ())
        if approval is None or decision(standing, approval, entry.name.order) is not None:
            return
        if approval.on_expire != REJECT:
            why = f"nobody answered within {length(approval.expires_s or 0.0)}"
            self._post(desk, entry, Verb.APPROVE, by=NOBODY, reason=why, answer=approval.at_the_end)
        self._ended.add(asked.request)
        desk.journal.note("APPROVAL_EXPIRED", entry.name.id, entry.name.attempt, on_expire=approval.on_expire)

    def _post(self, desk: Desk, entry: Entry, verb: Verb, **more: Any) -> None:
        """Publish a request of the leader's own, and see it at once. No name is used twice, so it says the door too:
        a leader that was in doubt whether it leads begins its epoch anew, and numbers from 0."""
        unique = f"{entry.name.order}-{base36(desk.epoch, 1)}-{base36(desk.door.number, 1)}-{next(self._numbers)}"
        request = control.post(
            desk.store, verb, entry.name.id, unique, order=entry.name.order, durable=desk.store.durable, **more
        )
        desk.view.see_requests(sorted([*desk.view.requests, request], key=Request.encode))
        desk.step.change()


def _moment(wall: float) -> datetime:
    """A moment; a time to answer may end beyond the calendar."""
    try:
        return datetime.fromtimestamp(wall, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime(9999, 12, 31, tzinfo=UTC)
