"""The slots that this worker's tasks have lent while they wait, and the order in which they come back.

Law: an attempt that asked for its slot goes on only after this room has let it, and nothing new is claimed before
that. What is lent is read from the loans in every step, and nothing of it outlives the worker or the attempt.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.rules.scheduling.lending import Held, demands, full_depths, given_back, lent_now
from spoold.runner.job import RunnerPort
from spoold.system.loans import Loans
from spoold.worker.attempts.attempt import Attempt

# While a slot is lent, the loans are looked at so often (s): a task that waits to go on does nothing else.
LOOK_S = 0.1
# How many tasks of one depth may lend, for each slot, unless the configuration says so.
PER_SLOT = 16


class Lending:
    """Knows whose slots are lent."""

    def __init__(self, loans: Loans, runner: RunnerPort, slots: int, most: int | None) -> None:
        """most: how many tasks of one depth may have lent their slots before no more of that depth start."""
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
        if not loans and not any(attempt.lent for attempt in attempts):
            self._held, self._asking = [], {}
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
        back = set(given_back(now, can, self._slots))
        lent = {held.key for held in now if held.lent} - back
        for attempt in attempts:
            attempt.lent = attempt.key in lent
        self._held = [held for held in now if held.key in lent]
        self._runner.lend(lent)
        for loan in loans:
            # Also a loan that was taken back before it counted, and one of an attempt that is over.
            if loan.attempt not in running or (loan.back and loan.attempt not in lent):
                self._loans.settle(loan)
                self._asking.pop(loan.attempt, None)
        return before != {key: key in lent for key in running}

    @property
    def lent(self) -> int:
        """How many slots are lent."""
        return len(self._held)

    def due(self, now: float) -> float:
        """When (monotonic, s) to look again; without loans only when a step comes anyway, or a loan wakes one."""
        return now + LOOK_S if self._held else math.inf

    @property
    def claims(self) -> bool:
        """Whether anything new may be claimed: not while a task wants its slot back."""
        return not self._asking

    @property
    def full(self) -> frozenset[int]:
        """The depths of which no more tasks are to be started."""
        return full_depths(self._held, self._most)


def demand(attempt: Attempt) -> Lane:
    """What an attempt takes of this worker's resources: without cpus while its slot is lent."""
    return demands([Held(attempt.key, attempt.lane, lent=attempt.lent)])[0]
