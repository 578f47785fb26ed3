"""The requests about single tasks: holds, questions, answers, messages. Reads each once, and removes it in the end.

Law: an answer stands until its task has ended, since a retry and the next leader need it, too. What is of no use is
noted and removed. A request that cannot be read has no effect, and is read again; a warning names it.
May touch: requests in control/, results of ended tasks, and the owners of a request, of its task and of claim
directories.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.master.desk import Desk
from spoold.master.place import Place
from spoold.master.placing import hold_one
from spoold.master.questions import Questions
from spoold.master.redoing import Redoing
from spoold.master.rejecting import take_away
from spoold.master.telling import LEFT, left_over, refused
from spoold.protocol.approval import may_answer
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_moving
from spoold.protocol.request import OF_ONE_TASK, Request, Verb
from spoold.protocol.result import Code, Error, Status
from spoold.rules.attempts import cancelling
from spoold.rules.gates import redo
from spoold.rules.gates.approval import asked_of
from spoold.rules.gates.requested import Requested, approvals, hold_of
from spoold.store import control, owners
from spoold.store.regular import readable_again
from spoold.system.errnos import concerns_one_file

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
                if not owners.may_answer(desk.store.fs, path, place.path if place else None):
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
        one = redo.standing(requests, name.order)
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
        kept = redo.rounds(requests)
        for one in filter(redo.is_redo, requests):
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
        past = [one for one in requests if redo.is_redo(one) and one.order != name.order]
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
            if cancelling.waited_enough(desk.step.now.monotonic - since):
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
