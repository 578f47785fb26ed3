"""The slots that this worker's tasks have lent while they wait, and the order in which they come back.

Law: an attempt that asked for its slot goes on only after this room has let it, and nothing new is claimed before
that. It gets a slot only once the units that it lent are its own again; while it waits for those alone, the worker
goes on claiming. What is lent is read from the loans in every step, and nothing of it outlives the worker or the
attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.rules.scheduling.lending import Held, demands, full_depths, given_back, lent_now
from spoold.runner.job import RunnerPort
from spoold.system.loans import Loans
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.units import Units

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
