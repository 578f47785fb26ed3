"""The slots and the units of limits that this worker's tasks have lent while they wait, and how they come back.

Law: an attempt that asked for its slot goes on only after this room has let it, and nothing new is claimed before
that. It gets a slot only once the units that it lent are its own again; while it waits for those alone, the worker
goes on claiming. What is lent is read from the loans in every step, and nothing of it outlives the worker or the
attempt. A task whose units a leader has lent goes on only after a leader has given them back. This worker believes
that by a listing of control/ alone, or where it has itself withdrawn an offer that no leader had taken. Where a loan
is in doubt the task waits. A task that uses nothing that is counted in the pool costs nothing here.
May touch: control/.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark, loan_unique
from spoold.rules.gates.limit_gates import lends
from spoold.rules.gates.resources import Resources
from spoold.rules.workers.slots import Held, demands, full_depths, given_back, lent_now
from spoold.runner.job import RunnerPort
from spoold.store import control
from spoold.store.mover import move
from spoold.store.store import Store
from spoold.system.slot_loans import Loans
from spoold.worker.attempts.attempt import Attempt

# Whether a task of a lane may go on beside tasks of these lanes.
Own = Callable[[Lane, Collection[Lane]], bool]
# While a slot is lent, the loans are looked at so often (s): a task that waits to go on does nothing else.
LOOK_S = 0.1
# How many tasks of one depth may lend, for each slot, unless the configuration says so.
PER_SLOT = 16


class Lending:
    """Knows whose slots are lent."""

    def __init__(
        self, loans: Loans, runner: RunnerPort, slots: int, most: int | None, units: Units, own: Own
    ) -> None:
        """most: how many tasks of one depth may have lent their slots before no more of that depth start. own:
        whether a task of a lane may go on, by the limits per worker, beside tasks of these lanes.
        """
        self._units, self._own = units, own
        self._next: list[str] = []  # those that wait for nothing but a slot
        self._loans, self._runner, self._slots, self._most = loans, runner, slots, most or PER_SLOT * slots
        self._asking: dict[str, None] = {}  # by the order in which they asked
        self._held: list[Held] = []

    @property
    def directory(self) -> str:
        """Where tasks put their loans; '' for nowhere."""
        return self._loans.directory

    def look(self, attempts: Collection[Attempt], can: Capabilities) -> bool:
        """Take in new loans, give slots back, and tell the runner; return whether any slot changed hands."""
        loans = self._loans.look()
        # Units of one that is over stay lent until its claim is gone: a leader may have given them out by then.
        over = {attempt.key for attempt in attempts if attempt.over}
        if not loans and not any(attempt.lent for attempt in attempts):
            self._held, self._asking, self._next = [], {}, []
            self._units.keep(over)
            return False
        running = {attempt.key: attempt for attempt in attempts if not attempt.over}
        waits = {loan.attempt for loan in loans if not loan.back}
        asks = dict.fromkeys(loan.attempt for loan in loans if loan.back and loan.attempt in running)
        self._asking = {key: None for key in (*self._asking, *asks) if key in asks}
        order = {key: place for place, key in enumerate(self._asking)}
        before = {key: attempt.lent for key, attempt in running.items()}
        now = lent_now(
            [
                Held(key, one.lane, one.task.level, one.lent, key in waits, key in asks)
                for key, one in sorted(running.items(), key=lambda pair: order.get(pair[0], len(order)))
            ]
        )
        self._next = self._complete(running, now)
        back = set(given_back([replace(held, asks=held.key in self._next) for held in now], can, self._slots))
        lent = {held.key for held in now if held.lent} - back
        for attempt in attempts:
            attempt.lent = attempt.key in lent
            attempt.back = attempt.lent and attempt.key in asks
        self._held = [held for held in now if held.key in lent]
        self._runner.lend(lent)
        for loan in loans:
            # Also a loan that was taken back before it counted, and one of an attempt that is over.
            if loan.attempt not in running or (loan.back and loan.attempt not in lent):
                self._loans.settle(loan)
                self._asking.pop(loan.attempt, None)
        self._next = [key for key in self._next if key in lent]
        self._units.keep(lent | over)
        return before != {key: key in lent for key in running}

    def _complete(self, running: dict[str, Attempt], now: list[Held]) -> list[str]:
        """Offer the units of those that wait; return which of those that ask have all their units, in order."""
        taken = [running[held.key].lane for held in now if not held.lent]
        found = []
        for held in now:
            attempt = running[held.key]
            if held.waits and not held.asks:
                self._units.lend(attempt)
            elif held.lent and self._units.has(attempt) and self._own(attempt.lane, taken):
                found.append(held.key)
                taken.append(attempt.lane)
        return found

    def counted(self, attempts: Iterable[Attempt]) -> list[Lane]:
        """Return the lanes of the attempts that count for the limits per worker: those that ask count already."""
        return [one.lane for one in attempts if not one.lent or one.key in self._asking]

    @property
    def lent(self) -> int:
        """How many slots are lent."""
        return len(self._held)

    def due(self, now: float) -> float:
        """When (monotonic, s) to look again; without loans only when a step comes anyway, or a loan wakes one."""
        return now + LOOK_S if self._held else math.inf

    @property
    def claims(self) -> bool:
        """Whether anything new may be claimed: not while a task wants its slot back, and nothing else."""
        return not self._next

    @property
    def full(self) -> frozenset[int]:
        """The depths of which no more tasks are to be started."""
        return full_depths(self._held, self._most)


def demand(attempt: Attempt) -> Lane:
    """What an attempt takes of this worker's resources: without cpus while its slot is lent."""
    return demands([Held(attempt.key, attempt.lane, lent=attempt.lent)])[0]


# The worker's end of a loan of units: what a waiting task uses of limits is offered to others, and asked back.


# A listing may miss a loan while a leader gives it another name. A leader does that once.
MISSES = 2
# After so many listings without it an offer is posted anew, under another number.
LOST = 10


@dataclass(slots=True)
class OwnLoan:
    """One loan. shown: the verb under which it was listed last; missed: how many listings have omitted it since it
    was posted, or since it was shown.
    """

    task_id: str
    unique: str
    shown: Verb | None = None
    missed: int = 0

    def path(self, verb: Verb) -> str:
        """The path of its file under this verb."""
        return control.path(Request(verb, self.task_id, self.unique))


class Units:
    """The loans of one worker's attempts."""

    def __init__(self, store: Store) -> None:
        self._store, self._numbers = store, itertools.count(1)
        self._loans: dict[str, OwnLoan] = {}
        self._resources: Resources | None = None

    def hear(self, requests: Iterable[Request]) -> None:
        """Take in a new listing of control/, and remove loans in it that are over."""
        found = [request for request in requests if request.verb in OF_A_LOAN]
        mark = loan_mark(self._store.writer) if found or self._loans else ""
        mine = {r.unique: r for r in sorted(found, key=_later) if r.unique.partition("-")[0] == mark}
        for own in self._loans.values():
            request = mine.pop(own.unique, None)
            own.missed = 0 if request is not None else own.missed + 1
            own.shown = request.verb if request is not None else own.shown
        for request in mine.values():
            self._remove(control.path(request))

    def lend(self, attempt: Attempt) -> None:
        """Offer the units of an attempt that waits; once, unless the offer was lost. Never raises OSError."""
        own = self._loans.get(attempt.key)
        if (own is not None and own.missed < LOST) or not self._counted(attempt):
            return
        own = self._loans[attempt.key] = OwnLoan(
            attempt.name.id, loan_unique(self._store.writer, next(self._numbers))
        )
        with suppress(OSError):  # the next listing shows whether it is there
            control.post(
                self._store, Verb.LEND, own.task_id, own.unique, reason=f"attempt {attempt.name.attempt} waits"
            )

    def has(self, attempt: Attempt) -> bool:
        """Whether the units of an attempt that wants to go on are its own; until then it asks for them."""
        own = self._loans.get(attempt.key)
        if own is None:
            return True
        if self._over(own):
            del self._loans[attempt.key]
            return True
        if own.shown is Verb.LENT and not own.missed:
            move(self._store.fs, own.path(Verb.LENT), own.path(Verb.REGAIN))  # the next listing shows it
        return False

    def keep(self, waiting: Collection[str]) -> None:
        """End the loans of all other attempts: they are over, or go on since their waiting process was killed."""
        for attempt in [attempt for attempt in self._loans if attempt not in waiting]:
            own = self._loans.pop(attempt)
            for verb in (Verb.LEND, Verb.LENT, Verb.REGAIN) if own.shown is None else (own.shown,):
                self._remove(own.path(verb))

    def _over(self, own: OwnLoan) -> bool:
        """Whether a loan is over: a leader has removed what asked for it, or it never counted."""
        if own.shown is Verb.REGAIN:
            return own.missed > 0
        if own.missed >= MISSES:
            return True
        if own.shown is Verb.LEND and not own.missed:
            with suppress(OSError):
                self._store.fs.unlink(own.path(Verb.LEND))
                return True
        return False

    def _counted(self, attempt: Attempt) -> bool:
        settings = self._store.settings
        if self._resources is None or self._resources.settings is not settings:
            self._resources = Resources(settings)
        return lends(self._resources.running(attempt.lane.encode()), self._resources.capacity)

    def _remove(self, path: str) -> None:
        with suppress(OSError):  # one that is left over is removed after the next listing
            self._store.fs.unlink(path)


def _later(request: Request) -> int:
    """While a loan gets another name, a listing may show both: the later counts."""
    return (Verb.LEND, Verb.LENT, Verb.REGAIN).index(request.verb)
