"""The limits as one worker keeps them: those that count per worker, and closed ones, which nothing may start under.

Law: an attempt that uses a limit starts only after control/ was listed and shows that the limit is open: a report of
a used-up quota is published before its attempt ends, so no attempt that starts later misses it. A task that uses no
limit costs nothing here. What counts per worker is of this process: a worker that starts again counts anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from spoold.protocol.errors import BadFile
from spoold.protocol.lanes import Lane
from spoold.protocol.request import Request, Verb
from spoold.protocol.settings import LimitSettings
from spoold.rules.attempts import quota as quotas
from spoold.rules.attempts.outcome import Outcome
from spoold.rules.attempts.quota import Quota
from spoold.rules.scheduling.matching import LIMIT, TYPE
from spoold.rules.scheduling.resources import limits_used
from spoold.rules.scheduling.windows import Window
from spoold.store import control
from spoold.store.store import Store, stamp
from spoold.worker.attempts.attempt import Attempt


class Room:
    """What is left of this worker's own limits while it claims."""

    def __init__(self, allowance: Allowance, running: Iterable[Lane]) -> None:
        self._allowance = allowance
        self._used: Counter[str] = Counter()
        for lane in running:
            self._used.update(allowance.uses(lane))

    def lets(self, lane: Lane) -> bool:
        """Whether one more task of the lane may be claimed."""
        uses = self._allowance.uses(lane)
        return all(self._allowance.has_room(name, units, self._used[name]) for name, units in uses.items())

    def take(self, lane: Lane) -> None:
        """Count a task that was claimed."""
        uses = self._allowance.uses(lane)
        self._used.update(uses)
        self._allowance.claimed(uses)


class Allowance:
    """One worker's limits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._windows: dict[str, Window] = {}
        self._closed: dict[str, float] = {}
        self._tried: set[str] = set()
        self._ends: dict[Request, float | None] = {}
        self._numbers = itertools.count()

    def uses(self, lane: Lane) -> dict[str, int]:
        """Return the units of this worker's own limits that a task of the lane uses."""
        settings = self._store.settings
        if not settings.limits:
            return {}
        found = limits_used(lane, settings)
        return {name: units for name, units in found.items() if self._own(name) is not None}

    def room(self, running: Iterable[Lane]) -> Room:
        """Return what is left beside these running tasks."""
        return Room(self, running if self._store.settings.limits else ())

    def has_room(self, name: str, units: int, used: int) -> bool:
        """Whether so many more units may be used, beside those in use."""
        limit = self._own(name)
        if limit is None:
            return True
        if (limit.max is not None and used + units > limit.max) or (name in self._closed and used):
            return False  # while a quota is tried, one task at a time
        window, now = self._windows.get(name), self._store.clock.monotonic()
        return limit.rate is None or window is None or window.used(now) + units <= limit.rate.count

    def claimed(self, uses: dict[str, int]) -> None:
        """Count the start of a task."""
        for name, units in uses.items():
            limit = self._own(name)
            if self._closed.get(name, math.inf) <= self._store.common.wall():
                self._tried.add(name)
            if limit is not None and limit.rate is not None:
                window = self._windows.setdefault(name, Window(limit.rate.count, limit.rate.per_s))
                window.change(limit.rate.count, limit.rate.per_s)
                window.add(self._store.clock.monotonic(), units)

    def shuns(self) -> dict[str, str]:
        """Return what this worker leaves to others, since its own quota is used up, as `matching.shuns` reads it."""
        now, found = self._store.common.wall(), dict[str, str]()
        for name, until in self._closed.items():
            if until > now:
                why = f"its quota of {name} is used up, until {stamp(until)}"
                found[f"{LIMIT}{name}"] = why
                types = self._store.settings.types.items()
                found |= {f"{TYPE}{kind}": why for kind, own in types if name in own.uses}
        return found

    def closed(self, lane: Lane) -> str | None:
        """Return why a task of this lane may not start now: a limit is closed. Errors: OSError."""
        settings = self._store.settings
        uses = limits_used(lane, settings) if settings.limits else {}
        if not uses:
            return None
        now = self._store.common.wall()
        listed = [r for r in control.list_requests(self._store.fs) if r.verb in (Verb.CLOSE, Verb.QUOTA)]
        self._ends = {request: end for request, end in self._ends.items() if request in listed}
        for request in listed:
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
                reason=f"task {attempt.name.id}, attempt {attempt.name.attempt}",
                until=datetime.fromtimestamp(until, UTC),
            )
        if quota.limit in limits_used(attempt.lane, self._store.settings):
            return quotas.closes(outcome, quota, stamp(until))
        fault = f"quota of {quota.limit} used up, which it does not use"
        return quotas.at_fault(replace(outcome, retry_after_s=until - self._store.common.wall()), fault)

    def ended(self, attempt: Attempt) -> None:
        """Learn from an attempt that is over: one that tried a quota, and did not report it again, opens it."""
        if not self._closed or attempt.ending is None or (attempt.judged is not None and attempt.judged.quota):
            return
        for name in self._tried.intersection(self.uses(attempt.lane)):
            self._tried.discard(name)
            del self._closed[name]

    def _end(self, request: Request) -> float | None:
        if request not in self._ends:
            with contextlib.suppress(BadFile, FileNotFoundError, PermissionError):
                self._ends[request] = control.end_of(self._store.fs, request)
        return self._ends.get(request)

    def _own(self, name: str) -> LimitSettings | None:
        limit = self._store.settings.limits.get(name)
        return limit if limit is not None and limit.per == "worker" else None
