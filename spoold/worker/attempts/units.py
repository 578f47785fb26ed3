"""The worker's end of a loan of units: what a waiting task uses of limits is offered to others, and asked back.

Law: a task whose units a leader has lent goes on only after a leader has given them back. This worker believes that
by a listing of control/ alone, or where it has itself withdrawn an offer that no leader had taken. Where a loan is in
doubt the task waits. A task that uses nothing that is counted in the pool costs nothing here.
May touch: control/.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark, loan_unique
from spoold.rules.scheduling.regaining import lends
from spoold.rules.scheduling.resources import Resources
from spoold.store import control
from spoold.store.mover import move
from spoold.store.store import Store
from spoold.worker.attempts.attempt import Attempt

# A listing may miss a loan while a leader gives it another name. A leader does that once.
MISSES = 2
# After so many listings without it an offer is posted anew, under another number.
LOST = 10


@dataclass(slots=True)
class Own:
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
        self._loans: dict[str, Own] = {}
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
        own = self._loans[attempt.key] = Own(attempt.name.id, loan_unique(self._store.writer, next(self._numbers)))
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

    def _over(self, own: Own) -> bool:
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
