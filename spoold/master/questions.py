"""The leader's questions: a task whose approval is all that it waits for is put before people, and its time may end.

Law: a question is a file, so that the next leader goes on with its time to answer. About ASKED_MAX stand at once, the
most urgent ones, since leaders and workers list control/. The time of every other goes on, too, and at its end it is
asked all the same: each question is asked, or its time ends.
May touch: questions and answers in control/.
"""

from __future__ import annotations

import heapq
import itertools
from datetime import UTC, datetime
from typing import Any

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.master.rejecting import take_away
from spoold.protocol.amount import length
from spoold.protocol.approval import REJECT
from spoold.protocol.lifecycle import State
from spoold.protocol.name_parts import rank_in
from spoold.protocol.names import TaskName, key
from spoold.protocol.order import base36
from spoold.protocol.request import Request, Verb
from spoold.rules.gates.approval import asked_of, expired
from spoold.rules.gates.requested import Requested, answer_of, decision, question
from spoold.rules.scheduling.entry import Entry
from spoold.store import control
from spoold.system.errnos import Meaning, classify

ASKED_MAX = 256
# So many tasks that came to the gate are taken in, and so many questions that are late asked, in one step.
HEARD = 256
NOBODY = "nobody"


class Questions:
    """unasked: tasks whose question does not stand yet, by name in waiting/ and key, the most urgent first; until:
    when (s since 1970) the time of such a question is over, by key; times: the same in order.
    asked: keys of those that were asked in this step; back: those whose question was taken back in it, as in unasked;
    ended: questions whose end was noted.
    """

    def __init__(self) -> None:
        self._unasked: list[tuple[str, str]] = []
        self._until: dict[str, float] = {}
        self._times: list[tuple[float, str]] = []
        self._asked: set[str] = set()
        self._back: list[tuple[str, str]] = []
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
        self._asked.clear()
        self._hear(desk)
        try:
            for one in desk.some(asked, "asked"):
                with desk.faults.handling("question", one.request.encode(), one.request.target):
                    self._expire(desk, one)
            self._ask_late(desk)
            self._ask(desk, asked)
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

    def _hear(self, desk: Desk) -> None:
        """Take in the tasks that came to the gate. The time to answer begins, whether the question stands or not."""
        for gave_way in self._back:
            heapq.heappush(self._unasked, gave_way)
        self._back.clear()
        for task_key in desk.backlog.parked.take("approval", HEARD):
            entry = desk.backlog.get(task_key)
            approval = None if entry is None else asked_of(entry.conditions)
            if entry is None or approval is None:
                continue
            heapq.heappush(self._unasked, (entry.file, task_key))
            if approval.expires_s is not None:
                self._until[task_key] = desk.step.now.wall + approval.expires_s
                heapq.heappush(self._times, (self._until[task_key], task_key))

    def _ask_late(self, desk: Desk) -> None:
        """Ask what nobody was asked before its time was over: as with any other question, its end follows."""
        for number in range(HEARD):
            if not self._times or self._times[0][0] > desk.step.now.wall:
                return
            if number and desk.late:
                desk.step.leave()
                return
            until, task_key = heapq.heappop(self._times)
            entry = self._waits(desk, task_key)
            if entry is not None and self._until.get(task_key) == until:
                with desk.faults.handling("late approval of the task", entry.name.id, entry.name.id):
                    self._put(desk, entry)

    def _ask(self, desk: Desk, standing: list[Requested]) -> None:
        """Ask the most urgent ones; where there is no room, one goes in the place of the least urgent."""
        room, begun = ASKED_MAX - len(standing) - len(self._asked), len(self._asked)
        while self._unasked:
            if len(self._asked) > begun and desk.late:
                desk.step.leave()
                return
            file, task_key = self._unasked[0]
            entry = self._waits(desk, task_key)
            if entry is None or entry.file != file:
                heapq.heappop(self._unasked)
            elif room > 0 or self._withdraw(desk, entry, standing):
                heapq.heappop(self._unasked)
                with desk.faults.handling("approval of the task", entry.name.id, entry.name.id):
                    self._put(desk, entry)
                room -= 1
            else:
                return

    def _waits(self, desk: Desk, task_key: str) -> Entry | None:
        """The task, if it waits for an answer and its question does not stand."""
        entry = desk.backlog.get(task_key)
        if entry is None or not desk.backlog.parked.at("approval", task_key):
            self._until.pop(task_key, None)
            return None
        stands = question(desk.backlog.parked.requested.get(task_key, ()), entry.name.order) is not None
        return None if stands or task_key in self._asked else entry

    def _withdraw(self, desk: Desk, entry: Entry, standing: list[Requested]) -> bool:
        """Take the least urgent question back, if it is less urgent than this task; its time goes on."""
        entries = ((one, desk.backlog.get(key(one.request.target))) for one in standing)
        found = [(other.file, one) for one, other in entries if other is not None and one.request not in self._ended]
        file, least = max(found, key=lambda pair: pair[0], default=("", None))
        if least is None or rank_in(file) <= entry.rank or not take_away(desk, control.path(least.request)):
            return False
        standing.remove(least)
        task_key = key(least.request.target)
        self._back.append((file, task_key))
        if least.until is not None:
            self._until[task_key] = least.until
            heapq.heappush(self._times, (least.until, task_key))
        desk.view.see_requests([one for one in desk.view.requests if one != least.request])
        desk.step.change()
        return True

    def _put(self, desk: Desk, entry: Entry) -> None:
        approval, until = asked_of(entry.conditions), None
        if approval is None:
            return
        desk.breathe()
        if (end := self._until.pop(key(entry.name.id), None)) is not None:
            until = _moment(end)
        elif approval.expires_s is not None:
            until = _moment(desk.step.now.wall + approval.expires_s)
        self._asked.add(key(entry.name.id))
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
