"""Carries out the requests of people in control/.

A request that is done is removed; a pause, a closed limit, a halt or a drain stands while it lasts. The first two may
end by themselves.

A request for many tasks is carried out as the requests for single ones for which it stands, each of them once. What a
worker has to do, or what has to wait until a task runs no more, becomes a request of its own: the rest must not wait
for that, and the next leader must not begin again with all of them.

Law: a leader carries a request out once, however long a share lists it afterwards. Before that, its journal records
the author of the request and the reason: no other record would outlive the request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spoold.master.people.reserving import Reservations
from spoold.master.people.task_requests import TaskRequests, revive
from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import take_away
from spoold.master.tasks.scheduler import rank_anew
from spoold.protocol.agent_messages import EXCERPT_MAX
from spoold.protocol.errors import BadFile
from spoold.protocol.event import ASKED
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_archived, parse_ended, parse_moving, parse_task
from spoold.protocol.request import (
    ENDING,
    EVERYTHING,
    MANY,
    OF_A_LOAN,
    OF_ONE_TASK,
    Request,
    Verb,
    each_of,
    rank_asked,
)
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Code, Error, Status
from spoold.rules.attempts import end_conditions
from spoold.rules.attempts.end_conditions import Cancel, past
from spoold.rules.cluster.pool_clock import LOOK_AGAIN_MIN_S, LOOK_AGAIN_S
from spoold.rules.gates.facts import Parent
from spoold.rules.gates.lock_holders import Demand
from spoold.rules.workers.readiness import is_meant
from spoold.store import control
from spoold.store.existence import readable_again
from spoold.store.lanes_and_archive import find_archived
from spoold.system.errnos import concerns_one_file

# What each of these removes.
_LIFTS = {
    Verb.RESUME: (Verb.PAUSE, Verb.HALT),
    Verb.UNDRAIN: (Verb.DRAIN,),
    Verb.OPEN: (Verb.CLOSE, Verb.QUOTA),
    Verb.RELEASE: (Verb.RESERVE,),
}
# These are about one task, and their names say all.
_OF_A_TASK = (Verb.CANCEL, Verb.RETRY, Verb.PRIORITY)
_TURNS = {State.CLAIMED: 0, State.READY: 1, State.RETURNED: 2, State.WAITING: 2}


class Requests:
    """Carries requests out, some in each step, each once: a share may list a request long after it is gone.

    unknown_since: since when (monotonic, s) nothing could be done; told: requests in the journal; doubted: useless
    requests, by a look that may be older than they are; over: requests that were carried out, and whether the file is
    gone; needs: the keys of the parents of tasks to be retried; latest: of the requests for priorities of this step,
    by task, when the last one was made: the end of its UNIQUE; many: the requests for many tasks that were read;
    part: of each single request for which one of these stands, that one.
    """

    def __init__(self) -> None:
        self._unknown_since: dict[Request, float] = {}
        self._told: set[Request] = set()
        self._doubted: set[Request] = set()
        self._over: dict[Request, bool] = {}
        self._needs: dict[Request, tuple[str, ...]] = {}
        self._latest: dict[str, str] = {}
        self._many: dict[Request, Many] = {}
        self._part: dict[Request, Request] = {}
        self._endings = Endings()
        self._reservations = Reservations()
        self.of_tasks = TaskRequests()

    def step(self, desk: Desk) -> None:
        """Do what can be done now. Errors: OSError; the rest stands for the next step."""
        self._forget_gone(set(desk.view.requests))
        self._tell(desk)
        self._endings.step(desk)
        self._reservations.step(desk)
        self.of_tasks.step(desk)
        self._latest.clear()
        for request in desk.view.requests:  # once: people change whole batches
            if request.verb is Verb.PRIORITY and (asked := rank_asked(request)) is not None:
                task_key = key(request.target)
                self._latest[task_key] = max(self._latest.get(task_key, ""), asked[1])
        for request in desk.some(filter(self._is_unread, desk.view.requests)):  # all, before any is carried out
            self._read_many(desk, request)
        for request in desk.some(filter(self._told_of, desk.view.requests), "requests"):
            if request in self._over:
                self._over[request] = self._over[request] or take_away(desk, control.path(request))
            elif request.target == MANY:
                self._carry_out_many(desk, request)
            else:
                self._carry_out_safely(desk, request)

    def _is_unread(self, request: Request) -> bool:
        """Whether it is for many tasks, and its content is to be read."""
        unread = request.target == MANY and request not in self._many and request not in self._over
        return unread and self._told_of(request)

    def _read_many(self, desk: Desk, request: Request) -> None:
        """Learn which tasks a request is for. One that does not say that is removed. Errors: OSError."""
        path = control.path(request)
        try:
            body = control.read_body(desk.store.fs, request)
            if not body.tasks:
                raise BadFile(path, "tasks", "is missing, so it is for no task.", 'write ids: "tasks": ["a", "b"].')
        except FileNotFoundError:
            return  # a person removed it, and it is listed a little longer
        except BadFile as error:
            desk.journal.note("IGNORED", request=request.verb, target=request.target, why=f"{error}")
            said = f"{error.told()} It was removed, and nothing of it was carried out. Fix: {error.mend}"
            desk.report.refuse(said, desk.step.now.monotonic)
            self._done(desk, request)
            return
        except OSError as error:
            if not concerns_one_file(error):
                raise
            unless = f"nothing of it is carried out until then; {readable_again(error)}"
            desk.report.notice(f"{path}: {error.strerror}; {unless}")
            return
        parts = sorted(each_of(request, body.tasks), key=lambda one: _turn(desk, one))
        keys, left = frozenset(key(one.target) for one in parts), dict.fromkeys(parts, False)
        self._many[request] = Many(body, _said(body), keys, left)
        self._part.update(dict.fromkeys(parts, request))

    def _carry_out_many(self, desk: Desk, request: Request) -> None:
        """Carry out what this step has time for. Errors: OSError; the rest stands for the next step."""
        many = self._many.get(request)
        if many is None:
            return  # it cannot be read
        standing = set(desk.view.requests)
        for one in desk.some(list(many.left)):
            place = desk.view.place(key(one.target))
            if place is not None and place.state is State.CLAIMED and one.verb is not Verb.RETRY:
                if one not in standing:
                    by, reason = many.body.by, many.body.reason
                    control.post(desk.store, one.verb, one.target, one.unique, by=by, reason=reason)
                self._part_done(desk, one)
            else:
                if not many.left[one]:
                    many.left[one] = True
                    desk.journal.note(ASKED, one.target, request=one.verb, target=one.target, **many.said)
                self._carry_out_safely(desk, one)
        if not many.left:
            self._done(desk, request)

    def _part_done(self, desk: Desk, request: Request) -> None:
        """Nothing is left to do for one task of a request for many."""
        self._many[self._part.pop(request)].left.pop(request, None)
        desk.step.change()

    def _carry_out_safely(self, desk: Desk, request: Request) -> None:
        """Carry a request out. One that spoold cannot carry out is removed, and the journal says why; one that only
        holds something back stands until it is lifted, as every request of its kind whose content is not known.
        """
        name = request.encode()
        if desk.faults.rests("request", name):
            return
        with desk.faults.handling("request", name, _task_of(request)) as handling:
            self._carry_out(desk, request)
        fault = handling.fault
        if fault is not None and fault.lasts and (request.verb in _LIFTS or request.verb in _OF_A_TASK):
            with desk.faults.handling("removal of request", name, _task_of(request)):
                desk.journal.note("IGNORED", _task_of(request), request=request.verb, why=fault.cause)
                self._done(desk, request)

    def _carry_out(self, desk: Desk, request: Request) -> None:
        if request.verb is Verb.CANCEL:
            if _cancel(desk, request, self._body(desk, request)):
                self._done(desk, request)
            else:
                self._forget_unknown(desk, request)
        elif request.verb is Verb.RETRY:
            self._retry(desk, request)
        elif request.verb is Verb.PRIORITY:
            if _rank(desk, request, self._latest_of(key(request.target))):
                self._done(desk, request)
            else:
                self._forget_unknown(desk, request)
        elif request.verb in _LIFTS:
            self._lift(desk, request)
        elif request.verb in (Verb.PAUSE, Verb.CLOSE) and self._endings.over(desk, request):
            if request.verb is Verb.PAUSE:  # of a limit the journal says anyway that it is open
                desk.journal.note("PAUSE_ENDED", target=request.target)
            self._done(desk, request)
        elif request.verb is Verb.RESERVE and self._reservations.over(desk, request):
            self._reservations.note_end(desk, request)
            self._done(desk, request)
        elif request.verb is Verb.DRAIN and desk.step.listed.everything and not _draining(desk, request.target):
            self._done(desk, request)  # by a look of now: on a share, a worker may have come since the last

    def next_due(self, desk: Desk) -> float | None:
        """When (monotonic, s) a standing request is over by itself; None where none is."""
        dues = (self._endings.next_due(desk), self._reservations.next_due(desk))
        return min((due for due in dues if due is not None), default=None)

    def _body(self, desk: Desk, request: Request) -> RequestBody:
        """Who asked, and why."""
        whole = self._part.get(request)
        return control.read(desk.store.fs, request) if whole is None else self._many[whole].body

    def _latest_of(self, task_key: str) -> str:
        """When the last request for the priority of a task was made, '' where none stands."""
        asked = [rank_asked(request) for request, many in self._many.items() if task_key in many.keys]
        return max([self._latest.get(task_key, ""), *(one[1] for one in asked if one is not None)])

    def _forget_gone(self, listed: set[Request]) -> None:
        """Forget requests that are no longer listed."""
        for request in self._many.keys() - listed:
            for part in self._many.pop(request).left:
                self._part.pop(part, None)
                self._unknown_since.pop(part, None)
        self._told &= listed
        self._doubted = {one for one in self._doubted if one in listed or one in self._part}
        self._needs = {one: needs for one, needs in self._needs.items() if one in listed or one in self._part}
        self._over = {request: gone for request, gone in self._over.items() if request in listed}

    def _tell(self, desk: Desk) -> None:
        """Note every request when first seen, before it is carried out and gone; REAPED records a reap."""
        untold = [request for request in desk.view.requests if not self._told_of(request)]
        for request in desk.some(untold):  # people cancel by the thousand
            self._told.add(request)
            with desk.faults.handling("request to note", request.encode(), _task_of(request)):
                _note(desk, request)

    def _told_of(self, request: Request) -> bool:
        """Whether the journal has it, if it gets it at all: it is not carried out before."""
        return request in self._told or request.verb is Verb.REAP or request.verb in OF_A_LOAN

    def _lift(self, desk: Desk, request: Request) -> None:
        """Lift at once. An open of a limit per worker stands until each worker that lives has listed it."""
        now = desk.step.now.monotonic
        if request not in self._unknown_since:
            _lift(desk, request)
            self._unknown_since[request] = now
        limit = desk.store.settings.limits.get(request.target) if request.verb is Verb.OPEN else None
        stands = limit is not None and limit.per == "worker"
        if not stands or now - self._unknown_since[request] >= desk.store.settings.heartbeat.dead_after_s:
            self._done(desk, request)

    def _forget_unknown(self, desk: Desk, request: Request) -> None:
        if desk.view.known(request.target) and not _is_lost(desk, request):
            return
        since = self._unknown_since.setdefault(request, desk.step.now.monotonic)
        if end_conditions.waited_enough(desk.step.now.monotonic - since):
            desk.journal.note("IGNORED", request.target, request=request.verb, why="there is no such task")
            self._done(desk, request)

    def _retry(self, desk: Desk, request: Request) -> None:
        """Retry a failed task. Any other needs no retry, if a look that is younger than the request shows that."""
        since = self._unknown_since.setdefault(request, desk.step.now.monotonic)
        patient = not end_conditions.waited_enough(desk.step.now.monotonic - since)
        place = desk.view.place(key(request.target))
        if place is not None and place.state not in (State.FAILED, State.COMPLETED):
            if request in self._doubted and desk.step.listed.everything and desk.step.listed.ended:
                self._done(desk, request)
            self._doubted.add(request)
            desk.step.doubt()
        elif patient and any(_has_failed(desk, parent) for parent in self._parents(desk, request)):
            return  # it would only fail once more, so it waits for the parent's own retry
        elif _retry(desk, request):
            # Requests for the same made meanwhile are about the same failure.
            same = (one for one in desk.view.requests if one.verb is Verb.RETRY)
            also = [one for one in same if key(one.target) == key(request.target)]
            for done in dict.fromkeys((request, *also)):
                self._done(desk, done)
        else:
            self._forget_unknown(desk, request)

    def _parents(self, desk: Desk, request: Request) -> tuple[str, ...]:
        """Return the keys of the tasks that the failed one needs, read once; none where that cannot be read."""
        known = self._needs.get(request)
        if known is None:
            path = _failed_at(desk, request)[0]
            try:
                with desk.faults.reading("file", path or "?", request.target):
                    task = desk.read_task(path) if path is not None else None
                known = tuple(map(key, task.dependencies)) if task is not None else None
            except BadFile:
                known = ()
            except PermissionError:
                return ()  # the retry itself says so
            self._needs[request] = known = known or ()
        return known

    def _done(self, desk: Desk, request: Request) -> None:
        self._unknown_since.pop(request, None)
        if request in self._part:
            self._part_done(desk, request)
            return
        self._over[request] = take_away(desk, control.path(request))
        desk.step.change()


@dataclass(slots=True)
class Many:
    """A request for many tasks. body: its content; said: what the journal has of that; keys: of all its tasks; left:
    the requests for single ones that are not carried out yet, in the order in which they are, and whether the journal
    has each.
    """

    body: RequestBody
    said: dict[str, Any]
    keys: frozenset[str]
    left: dict[Request, bool]


def _turn(desk: Desk, request: Request) -> tuple[int, str]:
    """The turn of one task among many: those that run first, then those that may start next."""
    place = desk.view.place(key(request.target))
    if place is None:
        return len(_TURNS), request.target
    return _TURNS.get(place.state, len(_TURNS)), place.name


def _task_of(request: Request) -> str | None:
    one = request.verb in (*_OF_A_TASK, *OF_ONE_TASK) and request.target != MANY
    return request.target if one else None


def _note(desk: Desk, request: Request) -> None:
    body = control.read(desk.store.fs, request)
    if request.verb is Verb.ASK and body.attempt is None:
        return  # the leader's own question, which it has noted
    known = _said(body)
    if request.target == MANY:
        known["tasks"] = len(body.tasks)
    desk.journal.note(ASKED, _task_of(request), request=request.verb, target=request.target, **known)


def _said(body: RequestBody) -> dict[str, Any]:
    """Return what the journal has of the content of a request."""
    said = {"by": body.by, "reason": body.reason, "until": body.ends, "ask": body.ask, "question": body.about}
    said["tell"] = body.tell[:EXCERPT_MAX]
    said["redo"] = ", ".join(task for task, _ in body.redo)
    said["locks"] = Demand(body.write, body.read).told()
    return {name: text for name, text in said.items() if text}


def _is_lost(desk: Desk, request: Request) -> bool:
    """Whether the archived task that is to be retried was removed."""
    return desk.view.place(key(request.target)) is None and find_archived(desk.store.fs, request.target) is None


def _cancel(desk: Desk, request: Request, body: RequestBody) -> bool:
    """Cancel; True when there is nothing left to cancel. body: who asked, and why."""
    place = desk.view.place(key(request.target))
    archived = place is None and key(request.target) in desk.view.archived
    decision = end_conditions.decide(place.state if place else None, archived=archived)
    name = parse_moving(place.name) if place else None
    if decision is not Cancel.FAIL or place is None or name is None:
        return decision is Cancel.OVER
    error = Error(code=Code.CANCELLED, message=body.told)
    return desk.fail(place, name, error, Status.CANCELLED)


def _rank(desk: Desk, request: Request, latest: str) -> bool:
    """Give a task the priority that was asked for; True when there is nothing left to do. One that runs gets it when
    it waits again. latest: when the last one for the task was made, which alone counts. Errors: OSError.
    """
    asked = rank_asked(request)
    if asked is None:
        desk.journal.note("IGNORED", request.target, request=request.verb, why="its name says no priority")
        return True
    if asked[1] < latest:
        return True
    place = desk.view.place(key(request.target))
    archived = place is None and key(request.target) in desk.view.archived
    decision = end_conditions.decide(place.state if place else None, archived=archived)
    name = parse_task(place.name) if place is not None and place.state in (State.WAITING, State.READY) else None
    if decision is not Cancel.FAIL or place is None or name is None:
        return decision is Cancel.OVER
    return name.rank == asked[0] or rank_anew(desk, place, name, asked[0])


def _failed_at(desk: Desk, request: Request) -> tuple[str | None, EndedName | None]:
    """Return where the failed task of a retry is, also in the archive; None if it is not there. Errors: OSError."""
    place = desk.view.place(key(request.target))
    if place is not None:
        return (place.path, parse_ended(place.name)) if place.state is State.FAILED else (None, None)
    path = find_archived(desk.store.fs, request.target)
    found = parse_archived(path.rpartition("/")[2]) if path else None
    return path, found[0] if found else None


def _retry(desk: Desk, request: Request) -> bool:
    """Retry; True when the task waits again, or has completed and so needs no retry."""
    task_key = key(request.target)
    place = desk.view.place(task_key)
    if place is None and desk.view.archived.state(task_key) not in (State.FAILED, State.SKIPPED):
        return task_key in desk.view.archived
    if place is not None and place.state is not State.FAILED:
        return True
    path, ended = _failed_at(desk, request)
    if path is None or ended is None:
        return False
    try:
        with desk.faults.reading("file", path, request.target):
            task = desk.read_task(path)
    except BadFile as error:
        desk.journal.note("IGNORED", request.target, request=request.verb, why=str(error))
        return True
    except PermissionError as error:
        desk.tell(path, error)
        return False
    if task is None:
        return False
    if not revive(desk, path, ended, task, "RETRIED"):
        return False
    if place is not None:
        desk.view.forget_place(place)
    return True


def _has_failed(desk: Desk, task_key: str) -> bool:
    return desk.view.parent(task_key) is Parent.FAILED


def _lift(desk: Desk, request: Request) -> None:
    """Remove the requests that a resume, undrain, open or release lifts; `+all` removes all of that kind."""
    lifted = _LIFTS[request.verb]
    for other in desk.view.requests:
        # A reservation is named by its last part, everything else by its target.
        named = (other.unique,) if request.verb is Verb.RELEASE else (other.target, EVERYTHING)
        if other.verb in lifted and (request.target in named or _same_worker(request, other)):
            take_away(desk, control.path(other))
    desk.view.see_requests(control.list_requests(desk.store.fs))


def _same_worker(undrain: Request, drain: Request) -> bool:
    """Whether one names a worker by its id and the other by its own name. A drain of all is only lifted as such."""
    if undrain.verb is not Verb.UNDRAIN or drain.target == EVERYTHING:
        return False
    return is_meant(drain.target, undrain.target) or is_meant(undrain.target, drain.target)


def _draining(desk: Desk, target: str) -> bool:
    """Whether a worker that a drain is meant for is still there."""
    return any(is_meant(target, worker) for worker in desk.view.claimed)


# When pauses and closed limits end by themselves: the only content of requests that a leader acts on.


# A request that could not be read is read again after this long (s).
READ_AGAIN_S = 10.0
FIX = "it stands until {}; {}"
LIFTED = {Verb.PAUSE: "`spool resume`", Verb.CLOSE: "`spool limits open`", Verb.QUOTA: "`spool limits open`"}


@dataclass(slots=True)
class Endings:
    """Reads each such request once.

    again: when (monotonic, s) to read a failed one again; wrong: the warning about it.
    """

    again: dict[Request, float] = field(default_factory=dict)
    wrong: dict[Request, str] = field(default_factory=dict)
    read: set[Request] = field(default_factory=set)

    def step(self, desk: Desk) -> None:
        """Read new requests. Errors: OSError that concerns more than one file."""
        listed = {request for request in desk.view.requests if request.verb in ENDING}
        self.read &= listed
        for known in (desk.request_ends, self.again, self.wrong):
            for gone in known.keys() - listed:
                del known[gone]
        for request in sorted(listed - self.read, key=Request.encode):
            if desk.step.now.monotonic >= self.again.get(request, 0.0):
                desk.breathe()
                self._read(desk, request)
        desk.report.notice(*self.wrong.values())

    def over(self, desk: Desk, request: Request) -> bool:
        """Whether a request has ended by itself."""
        end = desk.request_ends.get(request)
        return end is not None and past(end, desk.step.now.wall)

    def next_due(self, desk: Desk) -> float | None:
        """When (monotonic, s) the next request ends by itself; None where none does."""
        left_s = [end - desk.step.now.wall for end in desk.request_ends.values() if end > desk.step.now.wall]
        # As for a task's own moment: a clock may be set meanwhile, and a float may not show the last microsecond.
        return desk.step.now.monotonic + min(max(min(left_s), LOOK_AGAIN_MIN_S), LOOK_AGAIN_S) if left_s else None

    def _read(self, desk: Desk, request: Request) -> None:
        path, end = control.path(request), None
        self.again[request] = desk.step.now.monotonic + READ_AGAIN_S
        try:
            try:
                end = control.end_of(desk.store.fs, request)
            except BadFile as error:
                self.wrong[request] = f"{error.told()} It stands until {LIFTED[request.verb]}. {error.mend}"
            except OSError as error:
                if isinstance(error, FileNotFoundError) or not concerns_one_file(error):
                    raise
                self.wrong[request] = (
                    f"{path}: {error.strerror}; {FIX.format(LIFTED[request.verb], readable_again(error))}"
                )
            else:
                self.wrong.pop(request, None)
            if request.verb is Verb.QUOTA:
                end = control.quota_end(desk.store, request, end)
        except FileNotFoundError:
            return  # it was lifted, and is listed a little longer; or the share was away, and it is read again
        if request not in self.wrong:
            self.read.add(request)
        if end is not None:
            desk.request_ends[request] = end
