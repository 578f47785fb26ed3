"""What people and running tasks have reserved: requests `reserve`, with who holds and who waits.

A reservation holds its locks from the moment in which the leader sees it: nothing that conflicts begins any more. It
is granted once no task and no older reservation that conflicts with it is left.

Law: a reservation ends with its file: at its end, by a release, or with the attempt that made it. One that was not
read yet holds everything; one that is none is removed, and the journal and the status say why.
May touch: the content of reservations in control/.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from spoold.master.state.leader_state import Desk
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.request import EVERYTHING, Request, Verb
from spoold.protocol.request_body import RequestBody
from spoold.rules.attempts.end_conditions import past
from spoold.rules.cluster.pool_clock import LOOK_AGAIN_MIN_S, LOOK_AGAIN_S
from spoold.rules.gates.lock_holders import NO_LOCKS, Demand, Reserved
from spoold.store import control
from spoold.store.existence import readable_again
from spoold.system.errnos import concerns_one_file

# The first so many count, by name; so the leader never reads more.
RESERVATIONS_MAX = 1000
FIX = "until then it holds everything; {}"


@dataclass(slots=True)
class Reservations:
    """Reads each reservation once. wrong: those that are none, and why."""

    wrong: dict[Request, str] = field(default_factory=dict)

    def step(self, desk: Desk) -> None:
        """Read new ones, and tell which are granted now. Errors: OSError that concerns more than one file."""
        listed = standing(desk.view.requests)
        reserved = desk.backlog.locks.book.reserved
        for gone in reserved.keys() - listed.keys():
            del reserved[gone]
        self.wrong = {request: why for request, why in self.wrong.items() if reserved_key(request) in listed}
        for name, request in desk.some([one for one in listed.items() if one[0] not in reserved], "reservations"):
            with desk.faults.handling("reservation", request.encode()) as handling:
                self._read(desk, name, request)
            if handling.fault is not None:  # the status names it with all faults
                self._refuse(desk, name, request, handling.fault.cause)
        for name in desk.backlog.locks.book.grant():
            desk.journal.note("RESERVED", name=name.removeprefix("+"), locks=reserved[name].demand.told())
            desk.step.change()

    def over(self, desk: Desk, request: Request) -> bool:
        """Whether a reservation has ended by itself, or is none. It then holds nothing any more."""
        found = desk.backlog.locks.book.reserved.get(reserved_key(request))
        if found is None:
            return False
        found.over = found.over or past(found.until, desk.step.now.wall) or (found.task != "" and _ended(desk, found))
        return found.over

    def note_end(self, desk: Desk, request: Request) -> None:
        """Tell the journal that one has ended, or why it is none."""
        if why := self.wrong.get(request):
            desk.journal.note("IGNORED", request=request.verb, name=request.unique, why=why)
        else:
            desk.journal.note("RESERVATION_ENDED", name=request.unique)

    def next_due(self, desk: Desk) -> float | None:
        """When (monotonic, s) the next one ends by itself; None where none does."""
        now = desk.step.now.wall
        ends = [one.until - now for one in desk.backlog.locks.book.reserved.values() if not one.over]
        left_s = min((end for end in ends if end > 0), default=None)
        return None if left_s is None else desk.step.now.monotonic + min(max(left_s, LOOK_AGAIN_MIN_S), LOOK_AGAIN_S)

    def _read(self, desk: Desk, name: str, request: Request) -> None:
        try:
            body = control.read_body(desk.store.fs, request)
        except FileNotFoundError:
            return  # it was released, and is listed a little longer
        except BadFile as error:
            self._refuse_and_warn(desk, name, request, error)
            return
        except OSError as error:
            if not concerns_one_file(error):
                raise
            desk.report.notice(f"{control.path(request)}: {error.strerror}; {FIX.format(readable_again(error))}")
            return
        if (lack := _lacks(request, body)) is not None:
            self._refuse_and_warn(desk, name, request, lack)
            return
        latest = desk.step.now.wall + desk.store.settings.locks.max_reserve_s
        book = desk.backlog.locks.book
        book.reserved[name] = _reserved(request, body, latest)
        desk.step.change()  # what it names is known, so the next step counts that alone
        if book.overtakes(name):
            self._refuse(desk, name, request, "a later one that conflicts with it was granted already: reserve again")

    def _refuse_and_warn(self, desk: Desk, name: str, request: Request, fault: BadFile) -> None:
        self._refuse(desk, name, request, f"{fault}")
        desk.report.refuse(
            f"{fault.told()} It holds nothing, and was removed. Fix: {fault.mend}", desk.step.now.monotonic
        )

    def _refuse(self, desk: Desk, name: str, request: Request, why: str) -> None:
        """Let a file that is no reservation hold nothing."""
        self.wrong[request] = why
        desk.backlog.locks.book.reserved[name] = Reserved(NO_LOCKS, 0.0, over=True)


def _lacks(request: Request, body: RequestBody) -> BadFile | None:
    """What a reservation does not say, and has to."""
    path = control.path(request)
    if body.until is None:
        return BadFile(path, "until", "is missing, so it would never end.", "write a time in RFC 3339, with a zone.")
    if not body.write and not body.read:
        return BadFile(path, "write", "is missing, and so is read.", 'write patterns, such as "write": ["src/"].')
    return None


def standing(requests: Iterable[Request]) -> dict[str, Request]:
    """The reservations that count, by key."""
    listed = (request for request in requests if request.verb is Verb.RESERVE)
    return {reserved_key(request): request for request in islice(listed, RESERVATIONS_MAX)}


def reserved_key(request: Request) -> str:
    """The key of a reservation among the holders of locks: no task has it."""
    return f"+{request.unique}"


def _reserved(request: Request, body: RequestBody, latest: float) -> Reserved:
    assert body.until is not None
    task = "" if request.target == EVERYTHING else key(request.target)
    demand, until = Demand(body.write, body.read), min(body.until.timestamp(), latest)
    return Reserved(demand, until, task, body.attempt, body.by, body.at, body.reason)


def _ended(desk: Desk, reserved: Reserved) -> bool:
    """Whether the attempt that made the reservation is over, as far as listings show."""
    place = desk.view.where.get(reserved.task)
    if reserved.task in desk.backlog or (place is None and desk.view.known(reserved.task)):
        return True
    if place is None:
        return False  # an unknown task; the end of the reservation bounds that
    name: TaskName | None = parse_task(place.name)
    if place.state in (State.READY, State.CLAIMED, State.WAITING):
        return name is not None and reserved.attempt is not None and name.attempt > reserved.attempt
    return True
