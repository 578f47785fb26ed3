"""The limits as one worker keeps them: those that count per worker, and closed ones, which nothing may start under.

Law: an attempt that uses a limit starts only after control/ was listed and shows that the limit is open: a report of
a used-up quota is published before its attempt ends, so no attempt that starts later misses it. So such a task waits
in no slot behind another: between the listing and its start the report might come. A task that uses no limit costs
nothing here. What counts per worker is of this process: a worker that starts again counts anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import Request, Verb
from spoold.protocol.settings import LimitSettings
from spoold.rules.attempts import reported_figures as quotas
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.attempts.reported_figures import Quota
from spoold.rules.gates.breaker_gate import CLOSED, Row, went
from spoold.rules.gates.limit_gates import Window
from spoold.rules.gates.resources import limits_used
from spoold.rules.workers.matching import LIMIT, TYPE
from spoold.rules.workers.slots import machine_has, machine_needs
from spoold.store import control
from spoold.store.journal import Journal
from spoold.store.store import Store, stamp
from spoold.worker.attempts.attempt import Attempt

# The handlers of which only so many tasks may run on this worker at once (`max_concurrent`).


NO_BOUNDS: Mapping[str, int] = {}


class Crowding:
    """Knows of which types enough tasks run here. bounds: how many may, by type."""

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self.bounds = bounds
        self._count: Counter[str] = Counter()

    def begin(self) -> None:
        """Count anew: what runs is told next."""
        self._count.clear()

    def take(self, lane: Lane) -> None:
        """Count a task that runs here, or is about to."""
        if self._most(lane) is not None:
            self._count[lane.type] += 1

    def lets(self, lane: Lane) -> bool:
        """Whether one more task of the lane may run."""
        most = self._most(lane)
        return most is None or self._count[lane.type] < most

    def needs(self, lane: Lane) -> dict[str, float]:
        """What a task of the lane takes of its handler's bound, as `keeping` names it."""
        return {} if self._most(lane) is None else {f"handler {lane.type}": 1.0}

    def has(self, lane: Lane) -> dict[str, float]:
        """The bound of the lane's handler."""
        most = self._most(lane)
        return {} if most is None else {f"handler {lane.type}": float(most)}

    def full(self, lane: Lane, others: Iterable[Lane]) -> bool:
        """Whether so many of these others are of its type that it may not run beside them."""
        most = self._most(lane)
        return most is not None and sum((one.run, one.type) == (lane.run, lane.type) for one in others) >= most

    def shuns(self) -> dict[str, str]:
        """The types that are left to others for now, with the reason, by the count of the last step."""
        return {
            kind: f"it runs {amount(count, 'task')} of this type, as many as it may (max_concurrent of its handler)"
            for kind, count in self._count.items()
            if count >= self.bounds[kind]
        }

    def _most(self, lane: Lane) -> int | None:
        """Return how many tasks of the lane's type may run here; None for any number."""
        return self.bounds.get(lane.type) if lane.run == "handler" else None


# What people are told of a task that closes a limit which it does not use.
FOREIGN = ", which does not use it"


class Room:
    """What is left of this worker's own limits while it claims. idle: slots that are surely free."""

    def __init__(self, allowance: Allowance, running: Iterable[Lane], idle: int) -> None:
        self._allowance = allowance
        self._idle = idle
        self._used: Counter[str] = Counter()
        for lane in running:
            self._used.update(allowance.uses(lane))
            allowance.crowding.take(lane)

    def lets(self, lane: Lane) -> bool:
        """Whether one more task of the lane may be claimed. Errors: OSError."""
        return self.opens(lane) and self.has(lane)

    def opens(self, lane: Lane) -> bool:
        """Whether one may as soon as there is room for it. Errors: OSError."""
        if not self._allowance.breaking.lets(lane) or not self._allowance.crowding.lets(lane):
            return False
        if not self._allowance.limits(lane):
            return True
        return self._allowance.could_have(lane) and self._allowance.shut(lane) is None

    def has(self, lane: Lane) -> bool:
        """Whether there is room for it: a slot for a task that waits in none behind another, and units."""
        if not self._allowance.limits(lane):
            return True
        uses = self._allowance.uses(lane).items()
        return self._idle > 0 and all(self._allowance.has_room(name, units, self._used[name]) for name, units in uses)

    def take(self, lane: Lane) -> None:
        """Count a task that was claimed, or may have been."""
        self._idle -= 1
        self._used.update(self._allowance.uses(lane))
        self._allowance.crowding.take(lane)


class Allowance:
    """One worker's limits. breaking: the types that fail here; crowding: those of which enough tasks run here."""

    def __init__(self, store: Store, journal: Journal, most: Mapping[str, int] = NO_BOUNDS) -> None:
        """most: how many tasks of a handler may run here at once, by type."""
        self.breaking, self.crowding = Breaking(store, journal), Crowding(most)
        self._store = store
        self._windows: dict[str, Window] = {}
        self._closed: dict[str, float] = {}
        self._tried: set[str] = set()
        self._listed: list[Request] = []
        self._opened: set[Request] = set()
        self._ends: dict[Request, float | None] = {}
        self._numbers = itertools.count()

    def uses(self, lane: Lane) -> dict[str, int]:
        """Return the units of this worker's own limits that a task of the lane uses."""
        return {name: units for name, units in self.limits(lane).items() if self._own(name) is not None}

    def limits(self, lane: Lane) -> dict[str, int]:
        """Return the units of all limits that a task of the lane uses."""
        settings = self._store.settings
        return limits_used(lane, settings) if settings.limits else {}

    def needs(self, lane: Lane) -> dict[str, float]:
        """Return what a task of the lane takes of what is counted here, besides its slot, as `keeping` names it."""
        needs = {f"limit {name}": float(units) for name, units in self.uses(lane).items()}
        return {**machine_needs(lane), **needs, **self.crowding.needs(lane)}

    def has(self, lane: Lane, can: Capabilities) -> dict[str, float]:
        """Return how much there is of what a task of the lane needs. Starts within a window are spent."""
        found, now = {**machine_has(can), **self.crowding.has(lane)}, self._store.clock.monotonic()
        for name in self.uses(lane):
            limit, window = self._own(name), self._windows.get(name)
            assert limit is not None  # it is of those that count here
            started = 0 if window is None or limit.rate is None else window.used(now)
            found |= {f"limit {name}": float(min(most)) for most in [_mosts(limit, started)] if most}
        return found

    def could_have(self, lane: Lane) -> bool:
        """Whether this worker's own limits ever have as many units as a task of the lane uses."""
        own = [(units, limit) for name, units in self.uses(lane).items() if (limit := self._own(name)) is not None]
        return all(units <= most for units, limit in own for most in _mosts(limit))

    def room(self, running: Iterable[Lane], idle: int) -> Room:
        """Return what is left beside these running tasks. idle: slots that are surely free."""
        self.crowding.begin()
        return Room(self, running if self._store.settings.limits or self.crowding.bounds else (), idle)

    def hear(self, requests: Collection[Request]) -> None:
        """Take in the requests that stand: tasks of a closed limit are not even claimed; an open is obeyed once."""
        opens = {request for request in requests if request.verb is Verb.OPEN}
        for request in opens - self._opened:
            self._tried.discard(request.target)
            self._closed.pop(request.target, None)
        self._opened = opens
        self._listed = [request for request in requests if request.verb in (Verb.CLOSE, Verb.QUOTA)]
        if self._ends:
            self._ends = {request: end for request, end in self._ends.items() if request in self._listed}

    def has_room(self, name: str, units: int, used: int) -> bool:
        """Whether so many more units may be used, beside those in use."""
        limit = self._own(name)
        if limit is None:
            return True
        if (limit.max is not None and used + units > limit.max) or (name in self._closed and used):
            return False  # while a quota is tried, one task at a time
        window, now = self._windows.get(name), self._store.clock.monotonic()
        return limit.rate is None or window is None or window.used(now) + units <= limit.rate.count

    def lets_back(self, lane: Lane, others: Collection[Lane]) -> bool:
        """Whether a task that has lent its units may go on beside these; one that is alone always may."""
        for name, units in self.uses(lane).items():
            limit, used = self._own(name), self._used(name, others)
            if limit is not None and limit.max is not None and used and used + units > limit.max:
                return False
        return True

    def starts(self, lane: Lane) -> None:
        """Count the start of a task."""
        for name, units in self.uses(lane).items():
            limit = self._own(name)
            if self._closed.get(name, math.inf) <= self._store.common.wall():
                self._tried.add(name)
            if limit is not None and limit.rate is not None:
                window = self._windows.setdefault(name, Window(limit.rate.count, limit.rate.per_s))
                window.change(limit.rate.count, limit.rate.per_s)
                window.add(self._store.clock.monotonic(), units)

    def shuns(self) -> dict[str, str]:
        """Return what this worker leaves to others, since it fails here or its own quota is used up, as
        `matching.shuns` reads it.
        """
        now, found = self._store.common.wall(), {**self.crowding.shuns(), **self.breaking.shuns()}
        for name, until in self._closed.items():
            if until > now:
                why = f"its quota of {name} is used up, until {stamp(until)}"
                found[f"{LIMIT}{name}"] = why
                types = self._store.settings.types.items()
                found |= {f"{TYPE}{kind}": why for kind, own in types if name in own.uses}
        return found

    def closed(self, lane: Lane, idle: bool, others: Collection[Lane]) -> str | None:
        """Return why a task of this lane may not start now: a limit is closed, or it would wait in a slot; or, for a
        claim that turned up late, others have taken what was left on this worker.

        idle: whether a slot is surely free; others: the running tasks beside it. Errors: OSError.
        """
        if self.crowding.full(lane, others):
            return "its worker runs as many of its type as it may"
        if not self.limits(lane):
            return None
        if not idle:
            return "its worker has no slot free for it"
        for name, units in self.uses(lane).items():
            if not self.has_room(name, units, self._used(name, others)):
                return f"its worker has nothing left of limit {name}"
        self.hear(control.list_requests(self._store.fs))
        return self.shut(lane)

    def shut(self, lane: Lane) -> str | None:
        """As `closed`, by the requests that were heard last. Errors: OSError."""
        uses, now = self.limits(lane) if self._listed else {}, self._store.common.wall()
        for request in self._listed:
            if request.target in uses:
                end = self._end(request)
                if end is None or end > now:
                    what = "quota of" if request.verb is Verb.QUOTA else "closed limit"
                    return f"{what} {request.target}" + (f", until {stamp(end)}" if end is not None else "")
        return None

    def report(self, attempt: Attempt, outcome: Outcome, quota: Quota | str) -> Outcome:
        """Close the limit whose quota the attempt found used up; return the outcome. Errors: OSError."""
        if isinstance(quota, str):
            return quotas.at_fault(outcome, quota)
        limit = self._store.settings.limits.get(quota.limit)
        if limit is None:
            return quotas.at_fault(outcome, f"it reports a quota of {quota.limit}, which is no limit in spool.toml")
        until = quota.moment(self._store.common.wall(), limit)
        foreign = quota.limit not in limits_used(attempt.lane, self._store.settings)
        if limit.per == "worker":
            self._closed[quota.limit] = until
            self._tried.discard(quota.limit)
        else:
            unique = f"{self._store.writer}.{attempt.key}.{next(self._numbers)}".encode()
            control.post(
                self._store,
                Verb.QUOTA,
                quota.limit,
                hashlib.blake2b(unique, digest_size=8).hexdigest(),
                reason=f"task {attempt.name.id}, attempt {attempt.name.attempt}{FOREIGN if foreign else ''}",
                until=datetime.fromtimestamp(until, UTC),
                durable=self._store.durable,  # nobody repeats it
            )
        if not foreign:
            return quotas.closes(outcome, quota, stamp(until))
        fault = f"quota of {quota.limit} used up, which it does not use"
        rest_s = until - self._store.common.wall()
        # No gate holds the next attempt, so one that named the past or next to it has the backoff of any other.
        return quotas.at_fault(replace(outcome, retry_after_s=rest_s if rest_s > quotas.LEAST_S else None), fault)

    def ended(self, attempt: Attempt) -> None:
        """Learn from an attempt that is over: one that tried a quota, and did not report it again, opens it."""
        self.breaking.learn(attempt)
        if not self._closed or attempt.ending is None or (attempt.judged is not None and attempt.judged.quota):
            return
        for name in self._tried.intersection(self.uses(attempt.lane)):
            self._tried.discard(name)
            self._closed.pop(name, None)

    def _end(self, request: Request) -> float | None:
        if request not in self._ends:
            with contextlib.suppress(FileNotFoundError):
                try:
                    end = control.end_of(self._store.fs, request)
                except (BadFile, PermissionError):
                    end = None
                if request.verb is Verb.QUOTA:
                    end = control.quota_end(self._store, request, end)
                self._ends[request] = end
        return self._ends.get(request)

    def _used(self, name: str, others: Collection[Lane]) -> int:
        return sum(self.uses(other).get(name, 0) for other in others)

    def _own(self, name: str) -> LimitSettings | None:
        limit = self._store.settings.limits.get(name)
        return limit if limit is not None and limit.per == "worker" else None


def _mosts(limit: LimitSettings, started: int = 0) -> list[int]:
    """Return how many units may be used, by its `max` and by its rate, of which some have started."""
    most = [] if limit.max is None else [limit.max]
    return most if limit.rate is None else [*most, limit.rate.count - started]


# Failures in a row on this worker, by type: after as many as its breaker allows, the type is left to others.


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
