"""The requests about single tasks: holds, questions, answers, messages. Reads each once, and removes it in the end.

It stands apart from `requests`, its only user in this room: the two would be a thousand lines.

Law: an answer stands until its task has ended, since a retry and the next leader need it, too. An ended task that
waits again has a fresh budget of retries and a new ORDER, so no answer to an earlier question counts. What is of no
use is noted and removed. A request that cannot be read has no effect, and is read again; a warning names it.
May touch: requests in control/, results of ended tasks, and the owners of a request, of its task and of claim
directories.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import take_away
from spoold.master.state.tree_view import Place
from spoold.master.tasks.scheduler import hold_one
from spoold.protocol import layout
from spoold.protocol.agent_messages import STANDING_MAX, fault_in, told_in
from spoold.protocol.amount import length
from spoold.protocol.approval import REJECT, may_answer
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import COUNT_MAX, EndedName, TaskName, base36, key, parse_ended, parse_moving, rank_in
from spoold.protocol.request import OF_ONE_TASK, Request, Verb
from spoold.protocol.result import Code, Error, Status
from spoold.protocol.task import Task
from spoold.rules.attempts import end_conditions
from spoold.rules.attempts.task_policy import rank
from spoold.rules.gates import standing_requests
from spoold.rules.gates.approval_gate import asked_of, expired
from spoold.rules.gates.budget_usage import needs_reading
from spoold.rules.gates.standing_requests import Requested, answer_of, approvals, decision, hold_of, question, tells
from spoold.rules.scheduling.waiting_task import Entry
from spoold.store import approval_answers, control
from spoold.store.attempt_records import read_record
from spoold.store.existence import readable_again
from spoold.system.errnos import Meaning, classify, concerns_one_file

# A request that could not be read is read again after this long (s).
READ_AGAIN_S = 10.0
_ANSWERS = (Verb.APPROVE, Verb.REJECT)
_ENDED = (State.COMPLETED, State.FAILED)
NOBODY_ELSE = "its owner is the user as whom a worker runs tasks, and a task cannot answer; ask as another user"


class TaskRequests:
    """The requests about tasks that stand, by key of the task.

    over: those that are to be removed, and whether they are gone; again: when (monotonic, s) to read a failed one
    again; wrong: the warning about it; since: since when (monotonic, s) nothing could be done; told: accepted
    answers, by key and what they are about; open: those that were seen before their task had ended; by_name: holds
    that stand by their name alone, until a later step reads them.
    """

    def __init__(self) -> None:
        self._standing: dict[str, dict[Request, Requested]] = {}
        self._over: dict[Request, bool] = {}
        self._again: dict[Request, float] = {}
        self._wrong: dict[Request, str] = {}
        self._since: dict[Request, float] = {}
        self._told: dict[tuple[str, str], Request] = {}
        self._open: set[Request] = set()
        self._by_name: set[Request] = set()
        self._begun = False
        self._questions = Questions()
        self._redoing = Redoing()

    def gather(self, desk: Desk) -> None:
        """Read new requests, before anything is judged. Errors: OSError that concerns more than one file."""
        listed = {request for request in desk.view.requests if request.verb in OF_ONE_TASK}
        if not listed and not self._standing and not self._over:
            return
        for memory in (self._again, self._wrong, self._since, self._over):
            for gone in memory.keys() - listed:
                del memory[gone]
        known = {request for requests in self._standing.values() for request in requests}
        self._by_name &= known
        changed = {key(request.target) for request in known - listed}
        for request in known - listed:
            self._forget(request)
        new, unread = [], listed - (known - self._by_name) - self._over.keys()
        for request in desk.some(sorted(unread, key=Request.encode)):
            read = self._read(desk, request)
            unread.discard(request)
            if read is not None:
                self._standing.setdefault(key(request.target), {})[request] = read
                new.append(request)
        self._by_name = {request for request in unread if control.unread(request) is not None}
        for request in self._by_name - known:
            held = control.unread(request)
            assert held is not None
            self._standing.setdefault(key(request.target), {})[request] = held
            new.append(request)
        changed |= {key(request.target) for request in new}
        self._release(new)
        for task_key in sorted(changed):
            with desk.faults.handling("requests to publish of the task", task_key, task_key):
                self._publish(desk, task_key)
        desk.report.notice(*self._wrong.values())

    def step(self, desk: Desk) -> None:
        """Do what can be done now. Errors: OSError; the rest stands for the next step."""
        for task_key in desk.some(list(self._standing), "standing"):
            before = set(self._standing[task_key])
            if desk.faults.rests("requests about the task", task_key):
                continue
            with desk.faults.handling("requests about the task", task_key, task_key):
                self._judge(desk, task_key, list(self._standing[task_key].values()))
            if before != self._standing.get(task_key, {}).keys():
                self._publish(desk, task_key)
        self._begun = True
        standing = [one for requests in self._standing.values() for one in requests.values()]
        self._questions.step(desk, standing)
        for request in desk.some([request for request, gone in self._over.items() if not gone], "over"):
            self._over[request] = take_away(desk, control.path(request))

    def _read(self, desk: Desk, request: Request) -> Requested | None:
        if desk.step.now.monotonic < self._again.get(request, 0.0):
            return None
        path, unread = control.path(request), control.unread(request)
        self._again[request] = desk.step.now.monotonic + READ_AGAIN_S
        try:
            read = control.load(desk.store.fs, request)
            if request.verb in _ANSWERS:
                place = desk.view.place(key(request.target))
                if not approval_answers.may_answer(desk.store.fs, path, place.path if place else None):
                    self._ignore(desk, request, NOBODY_ELSE)
                    return None
        except FileNotFoundError:
            return None  # it is gone, and is listed a little longer
        except BadFile as error:
            effect = "It holds the task all the same." if unread else "It has no effect."
            self._wrong[request] = f"{error.told()} {effect} {error.mend}"
            return unread
        except OSError as error:
            if not concerns_one_file(error):
                raise
            effect = "it holds the task all the same" if unread else "it has no effect until then"
            self._wrong[request] = f"{path}: {error.strerror}; {effect}; {readable_again(error)}"
            return unread
        self._wrong.pop(request, None)
        return read

    def _release(self, new: list[Request]) -> None:
        """Let each release lift the holds before it, and each hold the releases before it. Of a hold and a release
        that are both new to this leader, the UNIQUE says which came first.
        """
        for one in new:
            other = {Verb.HOLD: Verb.UNHOLD, Verb.UNHOLD: Verb.HOLD}.get(one.verb)
            for before in list(self._standing.get(key(one.target), ())) if other else ():
                if before.verb is other and (before not in new or before.unique < one.unique):
                    self._end(before)

    def _judge(self, desk: Desk, task_key: str, requests: list[Requested]) -> None:
        """Act on the requests about one task by where it is."""
        place = desk.view.place(task_key)
        if task_key in desk.view.archived if place is None else place.state in _ENDED:
            left = left_over(desk, place, requests)
            for one in requests:
                if one.unique in left and one.request.verb is Verb.TELL:
                    self._ignore(desk, one.request, LEFT)
                if one.request.verb in _ANSWERS and self._begun and one.request not in self._open:
                    self._ignore(desk, one.request, "the task has ended")
                self._end(one.request)
            return
        for one, why in list(refused(requests)):
            self._ignore(desk, one.request, why)
            requests.remove(one)
        self._open.update(one.request for one in requests)
        name = None if place is None else parse_moving(place.name)
        if place is None:
            self._await(desk, requests, "there is no such task")
        elif name is not None:
            self._judge_holds(desk, place, name, requests)
            if self._sends_back(desk, place, name, requests):
                return
            asked = [one for one in requests if one.request.verb is Verb.ASK]
            over = {one.unique for one in asked if self._questions.over(desk, place, name, one, requests)}
            for one in requests:
                if (one.unique if one.request.verb is Verb.ASK else one.about) in over:
                    self._end(one.request)
            self._judge_replies(desk, [one for one in requests if one.request in self._open])
            self._judge_answers(desk, place, name, [one for one in requests if not one.about])

    def _sends_back(self, desk: Desk, place: Place, name: TaskName, requests: list[Requested]) -> bool:
        """Whether a redo decides this round: then nothing else is judged before it is done."""
        one = standing_requests.standing(requests, name.order)
        if one is None or place.state not in (State.WAITING, State.READY):
            return False
        if why := self._redoing.refusal(desk, one):
            self._ignore(desk, one.request, why)
        elif place.state is State.READY:
            hold_one(desk, place, name)
        elif not self._are_gone(desk, one, requests):
            desk.step.change()  # an answer without an ORDER would count for the next round, too
        else:
            self._redoing.go_on(desk, place, name, one)
        return True

    def _are_gone(self, desk: Desk, one: Requested, requests: list[Requested]) -> bool:
        """Remove the other answers about this round; True when none of them is left."""
        answers = [other for other in requests if other.request.verb in _ANSWERS and not other.about]
        here = [other for other in answers if other is not one and other.order in ("", one.order)]
        for other in here:
            self._ignore(desk, other.request, "the task was sent back, and asks anew")
        left = [other for other, gone in self._over.items() if not gone and other.verb in _ANSWERS]
        return not any(key(other.target) == key(one.request.target) for other in left)

    def _judge_rounds(self, desk: Desk, requests: list[Requested]) -> None:
        """Keep one redo of each round that is over: the tasks that it sent back are told of it."""
        kept = standing_requests.rounds(requests)
        for one in filter(standing_requests.is_redo, requests):
            if one not in kept or self._redoing.is_undone(desk, one):
                self._ignore(desk, one.request, "the task asks anew since")

    def _judge_holds(self, desk: Desk, place: Place, name: TaskName, requests: list[Requested]) -> None:
        held = hold_of(requests) is not None
        if held and place.state is State.READY:
            hold_one(desk, place, name)
        entry = desk.backlog.get(key(name.id))
        on_hold = name.conditional if entry is None else entry.conditions.asks("hold") is not None
        releases = sorted((one.request for one in requests if one.request.verb is Verb.UNHOLD), key=Request.encode)
        for done in releases[1:] if on_hold else releases:
            self._end(done)

    def _judge_replies(self, desk: Desk, requests: list[Requested]) -> None:
        """Look at the answers to questions of the running task."""
        asked = {one.unique: one for one in requests if one.request.verb is Verb.ASK}
        for one in requests:
            if not one.about or one.request.verb not in _ANSWERS:
                continue
            question = asked.get(one.about)
            if question is None:
                self._await(desk, [one], "the question is over")
            elif one.request.verb is Verb.APPROVE and not may_answer(question.choices, one.answer):
                self._ignore(desk, one.request, f"its answer is none of {', '.join(question.choices)}")
            else:
                self._accept(desk, one, question.choices)

    def _judge_answers(self, desk: Desk, place: Place, name: TaskName, requests: list[Requested]) -> None:
        """Look at the answers to the question about the task's approval."""
        past = [one for one in requests if standing_requests.is_redo(one) and one.order != name.order]
        self._judge_rounds(desk, past)
        answers = [one for one in requests if one.request.verb in _ANSWERS and one not in past]
        for one in [one for one in answers if one.order not in ("", name.order)]:
            self._ignore(desk, one.request, "the task was retried since, and asks anew")
        answers = [one for one in answers if one.order in ("", name.order)]
        entry = desk.backlog.get(key(name.id))
        settled = len(answers) == 1 and answers[0].request.verb is Verb.APPROVE
        if not answers or (entry is None and (settled or place.state is not State.READY)):
            return  # a task in ready/ is read only for what may change it
        if entry is not None:
            approval = asked_of(entry.conditions)
        else:
            task = desk.task_at(place, name) if name.conditional else None
            approval = None if task is None else task.approval
            if name.conditional and task is None:
                return
        if approval is None:
            for one in answers:
                self._ignore(desk, one.request, "the task asks for no approval")
            return
        valid = list(approvals(answers, approval, name.order))
        for one in answers:
            if one.request.verb is Verb.REJECT:
                if entry is None:
                    error = Error(code=Code.REJECTED, message=f"'{approval.ask}' was rejected {one.told}")
                    desk.fail(place, name, error, Status.CANCELLED)
                    return
            elif one not in valid:
                self._ignore(desk, one.request, f"its answer is none of {', '.join(approval.choices)}")
        self._choose(desk, valid, approval.choices)

    def _choose(self, desk: Desk, valid: list[Requested], choices: tuple[str, ...]) -> None:
        """Keep the one approve that counts: the one that this leader has accepted, else the first."""
        accepted = self._told.get((key(valid[0].request.target), "")) if valid else None
        counts = next((one for one in valid if one.request == accepted), valid[0] if valid else None)
        for one in valid:
            if one is not counts:
                self._ignore(desk, one.request, "it was answered already")
        if counts is not None:
            self._accept(desk, counts, choices)

    def _accept(self, desk: Desk, one: Requested, choices: tuple[str, ...]) -> None:
        about = key(one.request.target), one.about
        if self._told.get(about) != one.request:
            self._told[about] = one.request
            self._questions.tell(desk, one, choices)

    def _await(self, desk: Desk, requests: Iterable[Requested], why: str) -> None:
        """Give what is missing some time to come: a request can overtake its task."""
        for one in requests:
            since = self._since.setdefault(one.request, desk.step.now.monotonic)
            if end_conditions.waited_enough(desk.step.now.monotonic - since):
                self._ignore(desk, one.request, why)

    def _ignore(self, desk: Desk, request: Request, why: str) -> None:
        desk.journal.note("IGNORED", request.target, request=request.verb, why=why)
        desk.step.change()
        self._end(request)

    def _end(self, request: Request) -> None:
        """It is over: it counts no more from here on, and its file is removed at the end of the step."""
        self._forget(request)
        self._over.setdefault(request, False)

    def _forget(self, request: Request) -> None:
        mine = self._standing.get(key(request.target), {})
        gone = mine.pop(request, None)
        if not mine:
            self._standing.pop(key(request.target), None)
        self._open.discard(request)
        about = (key(request.target), "" if gone is None else gone.about)
        if self._told.get(about) == request:
            del self._told[about]

    def _publish(self, desk: Desk, task_key: str) -> None:
        """Tell the gates what stands about a task."""
        found = self._standing.get(task_key, {}).values()
        standing = tuple(one for one in found if one.request.verb is not Verb.TELL)  # no gate asks for messages
        if standing or task_key in desk.backlog.parked.requested:
            desk.backlog.request(task_key, standing, desk.step.now)
        desk.step.change()


# The leader's questions: a task whose approval is all that it waits for is put before people, and its time may end.


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


# Carries out a rejection that sends work back: earlier tasks run again, then the rejected one asks anew.


_EVENTS = {State.COMPLETED: "REDONE", State.FAILED: "RETRIED"}


class Redoing:
    """told: the redos that are noted in this leader's journal."""

    def __init__(self) -> None:
        self._told: set[Request] = set()

    def refusal(self, desk: Desk, one: Requested) -> str:
        """Why a redo cannot be done; '' where it can."""
        return standing_requests.refusal(one, {key(task): _seen(desk, task) for task, _ in one.redo})

    def is_undone(self, desk: Desk, one: Requested) -> bool:
        """Whether a redo of another round was never carried out."""
        return standing_requests.is_undone(one, _seen(desk, one.redo[0][0]))

    def go_on(self, desk: Desk, place: Place, name: TaskName, one: Requested) -> bool:
        """Move what is left of it; True when the rejected task has its new ORDER. Errors: OSError."""
        self._tell(desk, one)
        for task in standing_requests.left(one, {key(task): _seen(desk, task) for task, _ in one.redo}):
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


def _seen(desk: Desk, task: str) -> standing_requests.Seen | None:
    """Where a task is; None where it is archived or unknown."""
    place = desk.view.place(key(task))
    if place is None:
        return None
    if place.state in _EVENTS:
        ended = parse_ended(place.name)
        return None if ended is None else standing_requests.Seen(ended.attempt, ended=True)
    moving = parse_moving(place.name)
    return None if moving is None else standing_requests.Seen(moving.attempt, ended=False)


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


# Messages for agents, as the leader sees them: which are none, and which are left over when their task has ended.


LEFT = "the task has ended, and its result does not say that its agent has had this message"
TOO_MANY = f"the task has {STANDING_MAX} messages already, and no more are kept"


def refused(requests: Sequence[Requested]) -> Iterator[tuple[Requested, str]]:
    """Yield each message that cannot be given, and why."""
    sound = 0
    for one in tells(requests):
        fault = fault_in(one.tell)
        if fault is not None:
            yield one, f"the message {fault[0]}"
        elif sound == STANDING_MAX:
            yield one, TOO_MANY
        else:
            sound += 1


def left_over(desk: Desk, place: Place | None, requests: Sequence[Requested]) -> set[str]:
    """Return the names of the messages that the agent of an ended task has not had, as far as that is known. Errors:
    OSError of the share.
    """
    standing = {one.unique for one in tells(requests)}
    if not standing or place is None:
        return set()
    record = read_record(desk.store.fs, layout.join(layout.RESULTS, place.name))
    return standing - {one.name for one in told_in(record.output)} if record is not None else set()


# completed/, failed/ or archive/ → waiting/: an ended task waits again, as its next attempt.


def revive(desk: Desk, path: str, ended: EndedName, task: Task, event: str) -> bool:
    """Move the token, and tell those that wait for it; True when it waits. Errors: OSError."""
    name = TaskName(
        rank=rank(task, desk.store.settings),
        order=desk.orders.encode(desk.next_micros()),
        id=ended.id,
        attempt=min(ended.attempt + 1, COUNT_MAX),
        conditional=needs_reading(task, desk.store.settings),
    )
    if not desk.to_waiting(path, name, task.lane.encode(), task, event):
        return False
    desk.view.archived.discard(key(ended.id))
    desk.backlog.parent_changed(key(ended.id), desk.step.now)
    return True
