"""The rows of `spool ls --long`: each task's age, worker, last line of output, cost, and why it waits.

Law: looks and never touches. The facts for all rows (heartbeats, listings, requests, the leader's counts) are read
once, and only if a row needs them. Each row reads at most its task, its last result and the end of its last log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from spoold.client.read.attempt_logs import last_line
from spoold.client.read.gate_facts import Gates, asked_now, parents_seen, rest_of
from spoold.client.read.task_info import age_of, kind_of, read_content, reason_of
from spoold.client.spool.spool_status import judged_at
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, BadName, SpoolError
from spoold.protocol.heartbeat import Heartbeat, Running
from spoold.protocol.lanes import kind_in, own_lane, parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_log
from spoold.protocol.request import Request
from spoold.protocol.result import Result
from spoold.protocol.timestamps import moment
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent
from spoold.rules.gates.gate import Pass
from spoold.rules.gates.registry import conditions_of, parents_of
from spoold.rules.gates.standing_requests import Requested
from spoold.store import approval_answers, control, heartbeats, snapshots
from spoold.store.attempt_records import Ledger
from spoold.store.pool_clock import by_host, machine
from spoold.store.store import Store
from spoold.store.task_location import Located
from spoold.system.host import SystemHost


@dataclass(frozen=True, slots=True)
class Row:
    """One task. age_s: since it was admitted, or submitted; running_s: of the attempt that runs; silence_s: since the
    last beat of its worker, as far as clocks agree. failures and crashes: the charges on its retry budget.

    tokens_used and cost_usd: of all attempts that ended. reason: why it waits or failed; last_line: of its last log;
    sent_back: who sent it back last, in which round and why, until it has ended.
    """

    id: str
    state: str
    type: str
    age_s: float | None
    running_s: float | None
    attempt: int
    failures: int | None
    crashes: int | None
    worker: str | None
    silence_s: float | None
    tokens_used: float | None
    cost_usd: float | None
    reason: str
    last_line: str
    lane: str | None
    archived: bool
    path: str
    sent_back: str = ""


def describe(store: Store, found: Iterable[Located], hostname: str | None = None) -> list[Row]:
    """A row for each task. hostname: of this machine, whose clock may be known to be wrong; None to ask it.

    Errors: OSError.
    """
    return _Listing(store, list(found), hostname or SystemHost().identity().hostname).rows()


class _Listing:
    """One look at some tasks."""

    def __init__(self, store: Store, tasks: list[Located], hostname: str) -> None:
        self._store, self._tasks, self._hostname = store, tasks, hostname
        self._now = store.clock.wall()

    def rows(self) -> list[Row]:
        return [self._row(one) for one in self._tasks]

    def _row(self, located: Located) -> Row:
        name, last, running = located.name, self._last(located), self._running(located)
        lane = parse_lane(located.lane) if located.lane else None
        content = {} if lane is not None and name is not None else read_content(self._store, located)
        kind = lane.own_type if lane is not None else kind_of(content)
        spent = None if last is None else last.total or last
        return Row(
            id=located.id,
            state=located.state.value,
            type=kind,
            age_s=_positive(age_of(self._store, located, content, self._now)),
            running_s=_positive(self._since(running.since, self._ahead(located.node))) if running else None,
            attempt=located.attempt,
            failures=name.failures if name else None,
            crashes=name.crashes if name else None,
            worker=located.node or None,
            silence_s=self._silence_s(located),
            tokens_used=spent.tokens_used if spent else None,
            cost_usd=spent.cost_usd if spent else None,
            reason=self._reason(located, last),
            last_line=self._last_line(located),
            lane=located.lane or None,
            archived=located.archived,
            path=located.path,
            sent_back=self._sent_back(located),
        )

    def _reason(self, located: Located, last: Result | None) -> str:
        """Why it waits or failed; the gates are those that the leader asks."""
        if located.state in (State.WAITING, State.READY) and located.name is not None:
            lane = located.lane or ""
            if located.state is State.READY:
                verdict = self._gates.of_lane(lane, ready=True)
            else:
                task = key(located.id)
                rest_s = rest_of(located.name, moment(last.completed_at) if last is not None else None, self._now)
                conditions = self._conditions.get(task, NO_CONDITIONS)
                verdict = self._gates.of_waiting(lane, conditions, task, located.name.encode(), rest_s)
            if isinstance(verdict, Pass) and (home := own_lane(lane)) != lane:
                verdict = self._gates.of_lane(home)
                why = "" if isinstance(verdict, Pass) else f", since {verdict.reason}"
                return f"it goes to {kind_in(lane)}{why}"
            if not isinstance(verdict, Pass):
                return verdict.reason
        return reason_of(self._store, located, last)

    def _sent_back(self, located: Located) -> str:
        if located.name is None:
            return ""
        return approval_answers.sent_back(self._store.fs, located.name, located.path, self._redos)

    @cached_property
    def _conditions(self) -> dict[str, Conditions]:
        """The conditions of tasks that wait, by key; only files whose names say that they have any are read."""
        found = {}
        for one in self._tasks:
            if one.state is State.WAITING and one.name is not None and one.name.conditional:
                with contextlib.suppress(OSError, BadFile, BadName):
                    task = codec.load_task(self._store.fs.read(one.path), one.path)
                    found[key(one.id)] = conditions_of(task)
        return found

    @cached_property
    def _parents(self) -> dict[str, Parent]:
        wanted = {parent for one in self._conditions.values() for parent in parents_of(one)}
        return {key(ref): state for ref, state in parents_seen(self._store, wanted)[0].items()}

    def _parent(self, task_id: str) -> Parent:
        return self._parents.get(key(task_id), Parent.UNKNOWN)

    @cached_property
    def _requests(self) -> list[Request]:
        return control.list_requests(self._store.fs)

    @cached_property
    def _redos(self) -> tuple[Requested, ...]:
        return approval_answers.redos(self._store.fs, self._requests)

    @cached_property
    def _gates(self) -> Gates:
        latest = snapshots.latest(self._store.fs)
        queued = [one.id for one in self._tasks if one.state in (State.WAITING, State.READY)]
        asked = asked_now(self._store, queued, self._requests)
        # Whether a request has ended is for the pool's time to say.
        now = judged_at(self._store, self._store.clock, self._beats) if asked.ends else self._now
        return Gates(now, self._store.settings, asked, latest[1] if latest is not None else None, self._parent)

    @cached_property
    def _beats(self) -> dict[str, Heartbeat]:
        return heartbeats.read_all(self._store.fs)

    @cached_property
    def _clocks(self) -> dict[str, float]:
        return dict(by_host(self._beats.values()))

    def _ahead(self, node: str) -> float:
        """Return how far (s) the clock of this node's machine is ahead of ours; 0 where that is unknown."""
        beat = self._beats.get(node)
        theirs = self._clocks.get(machine(beat), 0.0) if beat is not None else 0.0
        return theirs - self._clocks.get(self._hostname, 0.0)

    def _running(self, located: Located) -> Running | None:
        if located.state is not State.CLAIMED or located.node not in self._beats:
            return None
        tasks = self._beats[located.node].running
        return next((r for r in tasks if key(r.id) == key(located.id) and r.attempt == located.attempt), None)

    def _silence_s(self, located: Located) -> float | None:
        if located.state is not State.CLAIMED or located.node not in self._beats:
            return None
        return _positive(self._since(self._beats[located.node].at, self._ahead(located.node)))

    def _since(self, stamp: str, ahead_s: float = 0.0) -> float | None:
        """Return the age (s) of a stamp by a clock that is so far ahead; None for text that is no stamp."""
        at = moment(stamp)
        return None if at is None else self._now - at + ahead_s

    def _last(self, located: Located) -> Result | None:
        """The result of the last attempt that ended; None where none has, or it cannot be read."""
        with contextlib.suppress(OSError, SpoolError):
            if (path := located.result) is not None:
                return codec.load_model(Result, self._store.fs.read(path), path)
            if located.name is not None and located.attempt > 1:
                return next(self._ledger.before(located.id, located.attempt), None)
        return None

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._store.fs)

    @cached_property
    def _logs(self) -> dict[str, tuple[int, str]]:
        """The last attempt that has a log, and its path, by key."""
        found: dict[str, tuple[int, str]] = {}
        for file in self._store.fs.list(layout.LOGS):
            name = parse_log(file)
            if name is not None:
                log = (name.attempt, layout.join(layout.LOGS, file))
                found[key(name.id)] = max(log, found.get(key(name.id), log))
        return found

    def _last_line(self, located: Located) -> str:
        """Return the last line of its log; '' for an archived task, whose log is not read."""
        if located.attempt == 0 or located.archived or (log := self._logs.get(key(located.id))) is None:
            return ""
        return last_line(self._store, log[1])


def _positive(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(0.0, seconds), 1)
