"""How much of each limit is free: what ready and claimed tasks use, what has started, and which task tries one again.

These are the facts behind `limit`, `rate`, `quota` and `breaker`. A quota request stands for each attempt that found
the quota used up. While the time of one lies ahead, the limit is closed. When all have passed, the limit is on trial:
one task goes first. When it has ended, or says that the limit serves it, the requests are listed anew, since its
worker publishes the same report before it ends the attempt. Without a new one the requests are removed, and the
others follow, twice as many after each RAMP_S. A breaker of a type counts failures in a row over the whole pool.

Law: counted anew from the listings in every step. A start that they show counts from the moment after them: the look
may have taken long, and the step began before it. A new leader is never more generous than the one before: it counts
each claim as a start of now, and each attempt whose record is in results/ as a start of the moment at which the
record was written, since it began no later. Without rates no record is looked at; only those of a window are read.
The requests alone say that a limit is on trial. The rows of breakers are saved and restored together with the
coverage of the result stream, and nothing of such a type starts before a new leader has read what ended until then.
Only which task tries is not saved: a new leader lets another one try, and one alone. May touch: control/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from spoold.master.limits.result_stream import Feed
from spoold.master.listing.task_metadata import unread
from spoold.master.state.leader_state import Desk
from spoold.master.state.limit_usage import Asked, Attempt, Past, Start, Trial
from spoold.master.state.rejecting import take_away
from spoold.master.state.tree_view import Place
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_ended, parse_moving, parse_task
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import EndedAttempt, Status
from spoold.protocol.settings import BreakerSettings
from spoold.rules.gates.breaker_gate import CLOSED, Book, Row, breakers_of, went
from spoold.rules.gates.limit_gates import RAMP_END_S, ramp
from spoold.rules.gates.resources import BREAKER, QUOTA, RATE, Capacity
from spoold.rules.gates.standing_requests import closed_by
from spoold.store import control
from spoold.store.attempt_records import read_record
from spoold.store.existence import names_in
from spoold.store.store import stamp
from spoold.system.filesystem import DamagedError

UNREAD = (
    "{} cannot be read, so it counts for every type that has a max_concurrent and for every limit, and may hold any "
    "lock; let the user that the master runs as read it (chmod, chown)"
)


def count_active(desk: Desk) -> None:
    """Count what the ready and the claimed tasks use; moves of this step are then counted as they are made.

    Uses that are in doubt are counted apart: while the doubt lasts, nothing new may become ready in their place.
    Errors: OSError.
    """
    usage, resources = desk.usage, desk.resources
    capacity, used = _count_starts(desk)
    usage.begin({**resources.capacity, **capacity}, (resources.uses(lane) for _, lane in adrift(desk)))
    for lane, names in desk.view.ready.items():
        usage.take(resources.uses(lane), len(names))
    desk.units.see(desk.view.requests)
    for node, names in desk.view.claimed.items():
        lent = desk.units.of(node, (task.id for task in names.values()))
        for task in names.values():
            uses = resources.running(desk.learned.lanes.get(key(task.id), ""))
            if lent and key(task.id) in lent:
                usage.lend(uses)
            else:
                usage.take(uses)
    usage.take(used)
    if usage.stock.capacity or len(desk.backlog.locks.book.line):
        locks = len(desk.backlog.locks.book.line) > 0
        desk.report.notice(*map(UNREAD.format, unread(desk, conditions=locks)))


def adrift(desk: Desk) -> Iterator[tuple[Place, str]]:
    """Yield tasks that were ready or claimed, or about to be, and that were seen nowhere since: their last place, and
    their lane, '' if that is unknown; of one that was to go to ready/, the lane that it was to go to. A task may come
    twice.

    A listing can miss a claim while its worker gives it another name, so such a task may not have ended.
    """
    missing = ((task_key, desk.view.where.get(task_key)) for task_key in desk.missing.keys)
    for task_key, place in (*desk.view.on_the_way.items(), *missing):
        if place is not None and place.state is State.WAITING:
            yield place, desk.learned.lanes.get(task_key, place.directory.partition("/")[2])
        elif place is not None and place.state is State.READY:
            yield place, place.directory.partition("/")[2]
        elif place is not None and place.state is State.CLAIMED:
            yield place, desk.learned.lanes.get(task_key, "")


def _count_starts(desk: Desk) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Notice what has started since the last step; return the capacity and the use of what counts starts."""
    starts, resources, now = desk.starts, desk.resources, desk.step.now
    opens: dict[str, float] = {}
    starts.see_rates(resources.rates, partial(_recorded, desk))
    starts.forget_before(now.monotonic)
    if not resources.limited and not starts.standing and not starts.shut:
        return {}, {}
    standing = begin_trials(desk)
    first = not starts.looked
    for lane, task in _begun(desk):
        for resource, units in resources.starts(lane).items():
            if resource.startswith(RATE):
                name, moment = resource.removeprefix(RATE), desk.store.clock.monotonic()
                starts.count(name, key(task.id), moment, units)
            elif not first and (trial := starts.trial_of(resource)) is not None:
                trial.started(task)
    capacity, used = look_at_quotas(desk, standing, opens)
    of_breakers, tried = look_at_breakers(desk)
    capacity, used = {**capacity, **of_breakers}, {**used, **tried}
    for name, window in starts.windows.items():
        used[f"{RATE}{name}"] = window.used(now.monotonic)
        room = window.opens(now.monotonic)
        if room is not None:
            opens[f"{RATE}{name}"] = now.wall + room - now.monotonic
    starts.look_again(opens)
    return capacity, used


def _begun(desk: Desk) -> list[Start]:
    uses, lanes = desk.resources.starts, desk.learned.lanes
    ready = [(lane, t) for lane, names in desk.view.ready.items() if uses(lane) for t in names.values()]
    running = [task for names in desk.view.claimed.values() for task in names.values()]
    claimed = [(lane, task) for task in running if uses(lane := lanes.get(key(task.id), ""))]

    def waits(attempt: Attempt) -> bool:
        entry = desk.backlog.get(attempt[0])
        return entry is not None and entry.name.attempt == attempt[1]

    return desk.starts.begun(ready, claimed, waits, desk.missing.keys)


def _recorded(desk: Desk, within_s: float) -> Iterator[Past]:
    """Yield the attempts whose records were written within so long, the oldest first. Errors: OSError."""
    found: list[tuple[float, str]] = []
    for name in names_in(desk.store.fs, layout.RESULTS, desk.view.blocked):
        desk.breathe()
        path = layout.join(layout.RESULTS, name)
        try:
            written = desk.store.fs.stat(path).mtime_ns / 1e9
        except FileNotFoundError:
            continue
        # While the server's time is unknown, every record counts as one of now.
        server, now = desk.store.common.server(), desk.store.clock.monotonic()
        age_s = 0.0 if server is None else max(0.0, server - written)
        if age_s < within_s:
            found.append((now - age_s, path))
    for moment, path in sorted(found):
        desk.breathe()
        ended = parse_ended(path.rpartition("/")[2])
        yield moment, "" if ended is None else key(ended.id), _used_in(desk, path)


def _used_in(desk: Desk, path: str) -> Mapping[str, int] | None:
    """Return what an attempt used of each limit, by its record; None if that cannot be known. Errors: OSError."""
    try:
        with desk.reading(path):
            result = read_record(desk.store.fs, path)
    except DamagedError:
        return None
    # Of an attempt whose worker died a leader of an earlier release may not have known the lane.
    if result is None or (result.uses is None and result.status == Status.WORKER_DIED):
        return None
    return result.uses or {}


# Limits whose quota was used up: when their time has come, one task tries, and then the others follow.


def begin_trials(desk: Desk) -> dict[str, list[Request]]:
    """Begin trials of limits whose time has come; return the quota requests that stand, by limit."""
    standing: dict[str, list[Request]] = {}
    for request in desk.view.requests:
        if request.verb is Verb.QUOTA:
            standing.setdefault(request.target, []).append(request)
    for name, requests in standing.items():
        if all(desk.request_ends.get(request, math.inf) <= desk.step.now.wall for request in requests):
            desk.starts.try_out(name)
        else:
            desk.starts.close_again(name)
    return standing


def look_at_quotas(
    desk: Desk, standing: dict[str, list[Request]], opens: dict[str, float]
) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Decide and end trials; return how many tasks of each limit on trial may start, and have started.

    standing: the requests from `begin`; opens: takes when (s since 1970) more may start. Errors: OSError.
    """
    starts, now = desk.starts, desk.step.now
    for name, trial in list(starts.trials.items()):
        if trial.since is not None:
            over = now.monotonic - trial.since >= RAMP_END_S
        else:
            over = name not in standing  # a person has opened it
        if over:
            starts.close_again(name)
        elif trial.since is None and name not in desk.store.settings.limits:
            _lift(desk, standing[name])  # it was taken out of the settings: nothing would try it
            starts.close_again(name)
        elif trial.since is None and trial.task is not None and _says(desk, trial.task):
            _decide(desk, name, trial, trial.task, standing[name])
        if trial.since is None and trial.task is None:
            ask(desk, trial.asked, f"{QUOTA}{name}")
    _note(desk)
    capacity, used = dict[str, Capacity](), dict[str, int]()
    # The end of a request is read later in a step; if it has passed by then, one task may start, too.
    for name, trial in ({name: Trial() for name in standing} | starts.trials).items():
        units, begun = 1, int(trial.task is not None)
        if trial.since is not None:
            units, left_s = ramp(name, max(0.0, now.monotonic - trial.since))
            begun, opens[f"{QUOTA}{name}"] = trial.begun, now.wall + left_s
        capacity[f"{QUOTA}{name}"] = Capacity(units, f"limit {name}", f"[limits.{name}]", most=0)
        used[f"{QUOTA}{name}"] = begun
    return capacity, used


def _decide(desk: Desk, name: str, trial: Trial, task: TaskName, requests: list[Request]) -> None:
    """Decide a trial whose task has ended, or says that it is served."""
    listed = control.list_requests(desk.store.fs)
    if any(r.verb is Verb.QUOTA and r.target == name and r not in requests for r in listed):
        desk.view.see_requests(listed)
        desk.starts.close_again(name)  # it found the quota used up again
    elif (desk.starts.serves(task) or not _for_nothing(desk, task)) and _lift(desk, requests):
        trial.went_well(desk.store.clock.monotonic())  # the looks of this step may have taken long
        desk.step.change()
    elif not runs(desk, task):
        trial.undecided()  # also where a request could not be removed: while it stands, one at a time goes


def _says(desk: Desk, task: TaskName) -> bool:
    """Whether there may be news of the attempt that tries."""
    return desk.starts.serves(task) or not runs(desk, task)


def _lift(desk: Desk, requests: list[Request]) -> bool:
    """Remove the requests; True when all are gone."""
    gone = [take_away(desk, control.path(request)) for request in requests]
    desk.view.see_requests(control.list_requests(desk.store.fs))
    return all(gone)


def ask(desk: Desk, asked: Asked, resource: str) -> None:
    """See which ready task is to try what the resource counts; if no worker takes it, let another lane be asked."""
    starts, now = desk.starts, desk.step.now.monotonic
    uses = desk.resources.starts
    standing = {task: lane for lane, task in starts.standing.values() if resource in uses(lane)}
    if not standing:
        asked.see_none()
        return
    task = asked.task if asked.task in standing else next(iter(standing))
    asked.see(standing[task], task, now)
    if not asked.in_vain(now, desk.store.settings.heartbeat.interval_s):
        return
    lanes = desk.backlog.lanes()
    others = [n for n in lanes if resource in uses(n) and n != asked.lane and not desk.fleet.unserved(n)]
    if asked.pass_on(others):
        desk.step.change()


def _note(desk: Desk) -> None:
    """Note in the journal which limits have closed or opened, and why; not of names that are no limits.

    Errors: OSError.
    """
    closed = closed_by(desk.view.requests, desk.request_ends, desk.step.now.wall)
    there = (frozenset(closed) | desk.starts.trying().keys()) & desk.store.settings.limits.keys()
    shut, opened = desk.starts.see_shut(there)
    for name in shut:
        verb = Verb.QUOTA if name not in closed or closed[name].quota else Verb.CLOSE
        request = next((one for one in desk.view.requests if (one.verb, one.target) == (verb, name)), None)
        reason = "" if request is None else control.read(desk.store.fs, request).reason
        why: dict[str, Any] = {"why": reason} if reason else {}
        desk.journal.note("LIMIT_CLOSED", limit=name, by="quota" if verb is Verb.QUOTA else "request", **why)
    for name in opened:
        desk.journal.note("LIMIT_OPENED", limit=name)


def runs(desk: Desk, task: TaskName) -> bool:
    """Whether the attempt may still go on."""
    place = desk.view.place(key(task.id))
    if place is None or key(task.id) in desk.missing.keys:
        return key(task.id) in desk.missing.keys
    found = parse_task(place.name)
    return place.state in (State.READY, State.CLAIMED) and found is not None and found.attempt == task.attempt


def _for_nothing(desk: Desk, task: TaskName) -> bool:
    """Whether the attempt ended at no charge: it was handed back, or asked to be tried later."""
    place, entry = desk.view.place(key(task.id)), desk.backlog.get(key(task.id))
    if place is not None:
        name = parse_moving(place.name)
    else:
        name = entry.name if entry is not None else None
    return name is not None and (name.failures, name.crashes) == (task.failures, task.crashes)


# Breakers of types: counts the failures in a row over the whole pool, from the feed, and sends one task to try.


# What the journal is told of a breaker: the type, and what it came to.
_Turn = tuple[str, Row]


class Breakers:
    """A subscriber of the feed, and the `book` by which its gate judges. It outlives epochs, as the feed does."""

    name = "breakers"

    def __init__(self) -> None:
        self.book = Book()
        self._rules: dict[str, BreakerSettings] = {}
        self._wall: Callable[[], float] = lambda: 0.0
        self._trials: dict[str, Trial] = {}
        self._turns: list[_Turn] = []
        self._decided = False  # whether a task that tried has ended since the last `tell`

    def begin(self, desk: Desk, feed: Feed) -> None:
        """Begin a step: by which settings and which clock it is counted. The first breaker makes it a subscriber."""
        self._rules, self._wall = breakers_of(desk.store.settings), desk.store.common.wall
        desk.breakers, self._trials = self.book, desk.starts.probes
        if self._rules:
            feed.join(desk, self)
        self.book.reading = bool(self._rules) and not feed.caught_up(desk)
        for kind, row in list(self.book.rows.items()):
            self._put(kind, row.under(self._rules.get(kind), self._wall()))

    def take(self, attempt: EndedAttempt) -> None:
        """Take in one attempt."""
        kind = attempt.type or ""
        rule, well, trial = self._rules.get(kind), went(attempt.status, attempt.code), self._trials.get(kind)
        tried = trial is not None and _is(trial, attempt.id, attempt.attempt)
        self._decided = self._decided or tried
        if rule is not None and well is not None:
            row = self.book.rows.get(kind, CLOSED)
            # The step may have begun long ago: a share that was silent since then has used up no time of the breaker.
            self._put(kind, row.after(well, _words(attempt), rule, self._wall(), tried=tried))

    def save(self) -> Any:
        """Return the rows as a JSON value."""
        return self.book.save()

    def restore(self, state: Any) -> None:
        """Replace the rows by saved ones; None: begin with nothing. Errors: ValueError."""
        self.book.rows = {} if state is None else Book.load(state)

    def tell(self, desk: Desk, feed: Feed) -> None:
        """Note in the journal which breakers have opened and closed; what was counted now may change who starts."""
        turns, self._turns = self._turns, []
        for kind, row in turns:
            if row.until is None:
                desk.journal.note("BREAKER_CLOSED", type=kind, of="pool")
            else:
                until = stamp(row.until)
                desk.journal.note("BREAKER_OPENED", type=kind, of="pool", failures=row.failures, until=until)
        if turns:
            feed.save_soon()  # else the next leader may have to count the same failures again
        if turns or self._decided or (self.book.reading and feed.caught_up(desk)):
            desk.step.change()
        self._decided = False

    def _put(self, kind: str, row: Row) -> None:
        before = self.book.rows.get(kind, CLOSED)
        self.book.put(kind, row)
        if before.until != row.until:
            self._trials.pop(kind, None)
            if before.until is None or row.until is None:
                self._turns.append((kind, row))


def look_at_breakers(desk: Desk) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Begin trials of breakers whose time is over, and end those that were decided by nothing; return how many tasks
    of each type with an open breaker may start, and have started.
    """
    book, trials, now = desk.breakers, desk.starts.probes, desk.step.now.wall
    tripped, capacity, used = book.tripped(), dict[str, Capacity](), dict[str, int]()
    book.trying.clear()
    for kind in trials.keys() - tripped.keys():
        del trials[kind]
    for kind, until in tripped.items():
        half_open, name = until <= now, f"{BREAKER}{kind}"
        if half_open:
            trial = trials.setdefault(kind, Trial())
            if trial.task is not None and not runs(desk, trial.task) and not _awaits_record(desk, trial):
                trial.undecided()
            if trial.task is None:
                ask(desk, trial.asked, name)
            used[name], book.trying[kind] = int(trial.task is not None), trial.tries
        else:
            trials.pop(kind, None)  # its time was put off
        capacity[name] = Capacity(int(half_open), f"type {kind}", f"[types.{kind}] breaker", most=0)
    return capacity, used


def _awaits_record(desk: Desk, trial: Trial) -> bool:
    """Whether the feed has not read yet how the attempt ended."""
    return any(_is(trial, end.name.id, end.name.attempt) for end in desk.ends.queue)


def _is(trial: Trial, task_id: str, attempt: int) -> bool:
    """Whether that attempt is the one that tries, or was asked to: its end may be listed before its start is."""
    task = trial.task or trial.asked.task
    return task is not None and (key(task.id), task.attempt) == (key(task_id), attempt)


def _words(attempt: EndedAttempt) -> str:
    how = f"exit code {attempt.exit_code}" if attempt.code == "EXIT_NONZERO" and attempt.exit_code else attempt.code
    return f"task {attempt.id}, attempt {attempt.attempt}, {how}"
