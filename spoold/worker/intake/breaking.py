"""Failures in a row on this worker, by type: after as many as its breaker allows, the type is left to others.

When the time is over it claims one task of the type; the others follow when that has ended well.

Law: counted in this process, as limits per worker are: a worker that starts again counts anew. It keeps this worker
from claiming, and nothing else: tasks that it has claimed go on.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.protocol.amount import amount
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, key
from spoold.rules.scheduling.breakers import CLOSED, Row, went
from spoold.rules.scheduling.matching import TYPE
from spoold.store.journal import Journal
from spoold.store.store import Store, stamp
from spoold.worker.attempts.attempt import Attempt

# An attempt: the key of its task, and its number.
_Tried = tuple[str, int]


class Breaking:
    """One worker's breakers."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._rows: dict[str, Row] = {}
        self._trials: dict[str, _Tried] = {}

    def learn(self, attempt: Attempt) -> None:
        """Count an attempt that is over."""
        kind, outcome = attempt.lane.type, attempt.judged
        tried = self._trials.get(kind) == (key(attempt.name.id), attempt.name.attempt)
        if tried:
            del self._trials[kind]
        rule = self._store.settings.of(kind).breaker
        if rule is None or attempt.fenced:
            return
        well = None if outcome is None else went(outcome.status, outcome.code)
        if outcome is None or well is None:
            return
        before, now = self._rows.get(kind, CLOSED), self._store.clock.monotonic()
        last = f"task {attempt.name.id}, attempt {attempt.name.attempt}, {outcome.message}"
        self._put(kind, before, before.after(well, last, rule, now, tried=tried))

    def shuns(self) -> dict[str, str]:
        """Return the types that this worker leaves to others now, as `matching.shuns` reads it, with the reason."""
        now = self._store.clock.monotonic()
        for kind, row in list(self._rows.items()):
            self._put(kind, row, row.under(self._store.settings.of(kind).breaker, now))
        return {
            f"{TYPE}{kind}": f"{amount(row.failures, 'failure')} in a row here, last: {row.last}; it takes one again "
            f"at {stamp(self._store.common.wall() + row.until - now)}"
            for kind, row in self._rows.items()
            if row.until is not None and row.until > now
        }

    def lets(self, lane: Lane) -> bool:
        """Whether a task of the lane may be claimed: while one tries an open breaker, no other."""
        row = self._rows.get(lane.type)
        if row is None or row.until is None:
            return True
        return row.until <= self._store.clock.monotonic() and lane.type not in self._trials

    def claimed(self, name: TaskName, lane: Lane) -> None:
        """Note a claim: with an open breaker it is the one that tries."""
        row = self._rows.get(lane.type)
        if row is not None and row.until is not None:
            self._trials[lane.type] = key(name.id), name.attempt

    def forget_gone(self, running: Collection[str]) -> None:
        """Forget trials whose tasks this worker does not have any more. running: keys of its tasks."""
        self._trials = {kind: tried for kind, tried in self._trials.items() if tried[0] in running}

    def _put(self, kind: str, before: Row, row: Row) -> None:
        self._rows.pop(kind, None)
        if row.failures:
            self._rows[kind] = row
        worker = self._store.writer
        if before.until is None and row.until is not None:
            until = stamp(self._store.common.wall() + row.until - self._store.clock.monotonic())
            self._journal.note("BREAKER_OPENED", type=kind, of=worker, failures=row.failures, until=until)
        elif before.until is not None and row.until is None:
            self._journal.note("BREAKER_CLOSED", type=kind, of=worker)
