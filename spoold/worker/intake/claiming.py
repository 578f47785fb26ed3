"""ready/ → claimed/<me>/: for how many tasks there is a place, which is taken next, and which are left to others.

A worker lists only the lanes that it can serve and takes the most urgent task it has room for. After a loss the
worker jumps ahead in the list, and on a share it begins at a place of its own, so that a crowd spreads out instead of
losing one after the other. For the first task that has no room yet it keeps room, as `rules.workers.slots` says.

Another machine may have a program that this one lacks, or other things that a task lacks here just now: its worker
should have the first choice. The quickest of all to claim is the worker whose tasks fail at once. So a worker keeps
away from a whole type whose handler could not run, or a module that could not be imported, each time for longer,
until one succeeds. A callable that no worker has is a task's mistake: it keeps no worker from its module.

Law: a claim is one rename, and no task is opened before it. Losing a race is normal: a claim that failed is not
looked into here, and the next look at this worker's own directory shows whether it was made. Nothing is claimed ahead
for a slot whose task has turned out to be long: tasks that wait behind it go back, for other workers to run. Nothing
at all is claimed while a task that had lent its slot waits for one. A cooldown charges no task and ends none, and one
success frees a whole type or module.
"""

from __future__ import annotations

import errno
import math
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Keeps
from spoold.protocol.lanes import Lane
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.result import Code, Status
from spoold.rules.attempts.attempt_outcome import Charge
from spoold.rules.workers import matching
from spoold.rules.workers.matching import MODULE, MOST_S, fits, free, left_as, pause_s, unfit
from spoold.rules.workers.passing import Passing
from spoold.rules.workers.slots import (
    FORGET_S,
    LATELY,
    PATIENCE_S,
    SLOT,
    Kept,
    ahead,
    beside,
    machine_has,
    machine_needs,
    within,
)
from spoold.runner.job import Ending, RunnerPort
from spoold.store.existence import names_in
from spoold.store.lanes_and_archive import list_lanes
from spoold.store.path_conflicts import denied, named
from spoold.store.step_timing import Polling, Slice
from spoold.store.store import Store
from spoold.system.clock import Clock
from spoold.system.errnos import Meaning, classify, concerns_one_file
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.lent_slots import Lending
from spoold.worker.attempts.worker_limits import Allowance, Room
from spoold.worker.intake.readiness import Offering

JUMP, SPREAD = 7, 32
# How often (s) new lanes are looked for, and how long a list of tasks is used, where a look costs a round trip.
LANES_S = 0.4
READY_S = 0.5


# A file in ready/ and its lane. Files sort by their names: by rank, then by age.
Offer = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task that is this worker's now."""

    name: TaskName
    lane: Lane


class Claiming:
    """Finds and takes tasks for one worker. doubt: called when a claim may have been made, unseen."""

    def __init__(
        self,
        store: Store,
        offering: Offering,
        doubt: Callable[[], None],
        allowance: Allowance,
        slots: int,
        order: Callable[[TaskName, Lane], None] = lambda name, lane: None,
    ) -> None:
        """order: receives each task before its claim, with its lane."""
        self._order = order
        self._allowance, self._slots, self._passing = allowance, slots, Passing(slots)
        self._store = store
        self._offering = offering
        self._serves: dict[str, bool] = {}
        self._polling = Polling(store)
        self._lanes: dict[str, Lane] = {}
        self._refused: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._closed: set[str] = set()
        self.lost = 0
        self._begun = 0
        self._left: list[Offer] = []
        self._fresh = True
        self._kept: Kept | None = None
        self._doubt = doubt

    def offers(self, shuns: Mapping[str, str]) -> list[Offer]:
        """Return the ready tasks in the lanes that this worker serves now, most urgent first. Errors: OSError.

        shuns: the types that it leaves to others, each with the reason, besides those of closed limits; the lanes of
        both are not even listed.
        On a share a long list is used for a moment: a claim out of it fails if another worker was quicker.
        """
        if self._offering.look({**shuns, **self._allowance.shuns()}):
            self._serves.clear()
            self._left = []
        self._fresh = self._polling.take("ready", READY_S * self._polling.dear) or len(self._left) < SPREAD
        if not self._fresh:
            return self._left
        found: list[Offer] = []
        if self._polling.take("lanes", LANES_S * self._polling.dear * self._polling.slow):
            self._lanes = list_lanes(self._store.fs, layout.READY)
        for lane_name, lane in self._lanes.items():
            if lane_name not in self._serves:
                can = self._offering.now
                self._serves[lane_name] = unfit(lane, can) is None and matching.shuns(lane, can) is None
            if self._serves[lane_name]:
                names = names_in(self._store.fs, layout.join(layout.READY, lane_name), self._closed)
                found += [(name, lane_name) for name in names]
        if found:
            self._polling.active()
        self._passing.order(found)
        if self._refused:
            self._refused = {file: self._refused[file] for file, _ in found if file in self._refused}
        if self._levels:
            standing = {layout.ready(lane_name, file) for file, lane_name in found}
            self._levels = {path: level for path, level in self._levels.items() if path in standing}
        self._left = found
        return found

    def claim(
        self,
        offers: list[Offer],
        slots: int,
        running: Mapping[str, Lane],
        skip: Collection[str],
        limits: Room,
        waits: Collection[str] = (),
        full: Collection[int] = (),
    ) -> Iterator[Claimed]:
        """Claim up to `slots` of the offers, yielding each as it is claimed. Errors: OSError.

        running: the demands of running tasks, by key; skip: keys of tasks that it leaves alone for now; limits: what
        is left of this worker's own limits, and slots that are surely free; waits: keys of running tasks that wait
        for others; full: depths of which it takes none, for which alone a task is read before its claim. Offers that
        were tried are taken off the list. A claim that failed is not looked into here: nearly always another worker
        was quicker, and if it was carried out all the same, the next look at this worker's own directory finds it.
        """
        left, room, index = offers, free(self._offering.now, list(running.values())), self._begin(offers)
        self._allowance.breaking.forget_gone(skip)
        if self._fresh or self._kept is None:
            serves = {name: lane for name, lane in self._lanes.items() if self._serves.get(name)}
            short = {name: lane for name, lane in serves.items() if not (fits(lane, room) and limits.has(lane))}
            # Mostly none is short, and then this costs nothing more.
            held = {k: self._held(demand, waits=k in waits) for k, demand in running.items()} if short else {}
            fixed = [needs for k, needs in held.items() if k in waits]
            self._keep(self._first_without_room(offers, short, skip, limits, fixed, full), held)
        time = Slice(self._store.clock)
        while slots > 0 and left and not time.over:
            index = index if index < len(left) else 0
            file, lane_name = left.pop(index)
            name, lane = parse_task(file), self._lanes[lane_name]
            if name is None or key(name.id) in skip or not (fits(lane, room) and limits.lets(lane)):
                continue
            if full and self._level(lane_name, file) in full:
                continue
            if self._kept is not None and not self._kept.lets(name, self._takes(lane)):
                continue
            self._order(name, lane)
            error = self._store.attempt(
                Mover.WORKER, "CLAIMED", layout.ready(lane_name, file), layout.claimed(self._store.writer, file)
            )
            if error is not None and (concerns_one_file(error) or isinstance(error, FileExistsError)):
                self._doubt()
                if file not in self._refused:
                    self._refused[file] = f"task {name.id} cannot be claimed: {self._why(error, lane_name, file)}"
                continue
            slots -= 1  # also where it failed: the claim may have been made all the same
            limits.take(lane)
            if self._kept is not None:
                self._kept.take(self._takes(lane))
            self._allowance.breaking.claimed(name, lane)
            if error is None:
                self._passing.claimed(file, left)
                self._refused.pop(file, None)
                room = room.without(lane)
                yield Claimed(name, lane)
                continue
            self._doubt()
            if classify(error) is not Meaning.GONE:
                return
            self.lost += 1
            index = self._jump(len(left))

    @property
    def keeps(self) -> Keeps | None:
        """The task for which room is kept, as the heartbeat says it."""
        return None if self._kept is None else self._kept.told()

    def _first_without_room(
        self,
        offers: list[Offer],
        short: Mapping[str, Lane],
        skip: Collection[str],
        limits: Room,
        fixed: list[dict[str, float]],
        full: Collection[int],
    ) -> tuple[TaskName, Lane] | None:
        """Return the first task in order that only lacks room here, with its lane. Errors: OSError.

        short: the lanes of those; fixed: what running tasks hold of the machine that wait for others. Those may stand
        after it, so that does not come free by itself.
        """
        free_at_last = beside(machine_has(self._offering.now), fixed)
        able = {name: lane for name, lane in short.items() if within(machine_needs(lane), free_at_last)}
        for file, lane_name in offers if able else ():
            name = parse_task(file) if lane_name in able and file not in self._refused else None
            if name is None or key(name.id) in skip or not limits.opens(able[lane_name]):
                continue
            if not full or self._level(lane_name, file) not in full:
                return name, able[lane_name]
        return None

    def _keep(self, first: tuple[TaskName, Lane] | None, held: Mapping[str, dict[str, float]]) -> None:
        """Keep room for this task: if it is another than before, it waits for all that runs here now."""
        if first is None:
            self._kept = None
            return
        name, lane = first
        if self._kept is None or self._kept.name != name:
            self._kept = Kept(name, self._needs(lane), frozenset(held))
        self._kept.count(self._has(lane), held.items())

    def _has(self, lane: Lane) -> dict[str, float]:
        return {**self._allowance.has(lane, self._offering.now), SLOT: float(self._slots)}

    def _held(self, demand: Lane, *, waits: bool) -> dict[str, float]:
        """Return what a running task holds: one that waits for others has lent its slot and its units."""
        return machine_needs(demand) if waits else self._takes(demand)

    def _needs(self, lane: Lane) -> dict[str, float]:
        """Return what a task waits for: also a slot that is free, where it waits in none behind another."""
        needs = self._allowance.needs(lane)
        return {**needs, SLOT: 1.0} if self._allowance.limits(lane) else needs

    def _takes(self, lane: Lane) -> dict[str, float]:
        return {**self._allowance.needs(lane), SLOT: 1.0}

    def _level(self, lane_name: str, file: str) -> int | None:
        """The depth of a task in ready/, which never changes; None where it cannot be read."""
        path = layout.ready(lane_name, file)
        if path not in self._levels:
            try:
                with self._store.faults.reading("file", path):
                    self._levels[path] = codec.load_task(self._store.fs.read(path), path).level
            except (OSError, BadFile):
                return None
        return self._levels[path]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people: ready tasks that cannot be claimed, and lanes that this user may not list."""
        closed = (
            f"{lane} may not be listed by this worker's user: its tasks are passed over" for lane in self._closed
        )
        return (
            *named(list(self._refused.values()), "tasks that cannot be claimed"),
            *named(sorted(closed), "lanes that this worker's user may not list"),
        )

    def _why(self, error: OSError, lane_name: str, file: str) -> str:
        """Return why a claim was refused, with the fix where the cause is known."""
        if error.errno != errno.EACCES:
            return error.strerror or str(error)
        src, dst = layout.ready(lane_name, file), layout.claimed(self._store.writer, file)
        return denied(self._store.fs, error, src, dst)

    def _begin(self, offers: list[Offer]) -> int:
        """Return where to begin: with the oldest of the most urgent; on a share, where a lost race costs round trips,
        with one of the oldest of them, another one for each worker and each time.
        """
        if not offers or not self._polling.rationed:
            return 0
        self._begun += 1
        rank = offers[0][0].partition(".")[0]
        equals = sum(file.partition(".")[0] == rank for file, _ in offers[:SPREAD])
        return zlib.crc32(f"{self._store.writer}.{self._begun}".encode()) % equals

    def _jump(self, left: int) -> int:
        """Return a place further on, another one for each worker and each loss."""
        return zlib.crc32(f"{self._store.writer}.{self.lost}".encode()) % min(left, JUMP) if left else 0


# For how many more tasks this worker has a place: in its free slots, and ahead, in slots whose tasks are short.


class Vacancies:
    """Knows how long tasks took lately, and ensures that no task waits for long behind another."""

    def __init__(self, runner: RunnerPort, slots: int, lending: Lending) -> None:
        self._runner, self.lending = runner, lending
        self._slots = slots
        self._lately: deque[float] = deque(maxlen=LATELY)
        self._heard_at = -math.inf
        self._engaged = 0

    def look(self, now: float, ended: Iterable[Ending], held: int) -> None:
        """See which tasks were short, and which have turned out to be long: tasks that wait behind those go back.

        Call it right after the endings were heard: later in a step, tasks that ended while the share was slow would
        seem long. held: how many tasks are here; now: monotonic, s.
        """
        if now - self._heard_at > FORGET_S:
            self._lately.clear()
        for ending in ended:
            self._lately.append(ending.duration_s)
            self._heard_at = now
        self._engaged = self._runner.engaged(PATIENCE_S)
        if held - self.lending.lent > self._slots:
            self._runner.relieve(PATIENCE_S)

    def free(self, held: int) -> int:
        """Return how many more than those `held` may be claimed; below 0 if there are too many already.

        None while a task that had lent its slot waits for one.
        """
        if not self.lending.claims:
            return 0
        held -= self.lending.lent
        return self._slots + ahead(self._lately) * max(self._slots - self._engaged, 0) - held

    def due(self, now: float, held: int) -> float:
        """When to `look` again."""
        soon = self.lending.due(now)
        return min(soon, now + PATIENCE_S) if held - self.lending.lent > self._slots else soon


# Tasks that this worker could not run, or was asked to try later, and leaves to others for a while.


# How long (s) a task rests that may succeed here next time.
COOLDOWN_S = 5.0
# How long (s) it is remembered that no worker had a callable; if one has it now, the module is left to it again.
NOWHERE_S = 60.0
# For how many tasks the worker counts failures to run them here, and how many of them are reported.
PAUSES_REMEMBERED, PAUSES_REPORTED = 1000, 20
# Tasks name modules as they like, so only the latest SHUNNED are left to others; SAID: characters of a reason.
SHUNNED, SAID = 50, 300


@dataclass(slots=True)
class _Pause:
    """failed: how often in a row, -1 for a type that has succeeded since; until: monotonic, s."""

    failed: int = 0
    until: float = 0.0
    why: str = ""


class Cooldown:
    """What one worker leaves to others now: tasks by their keys, types, and modules (see `matching.left_as`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, _Pause] = {}
        self._types: dict[str, _Pause] = {}
        self._nowhere: dict[str, float] = {}  # callables, until when

    def learn(self, attempt: Attempt) -> None:
        """Draw the conclusion from an attempt that is over."""
        outcome, now = attempt.judged, self._clock.monotonic()
        kind, called = left_as(attempt.lane), attempt.task.python
        if outcome is None:
            return
        if outcome.elsewhere:
            mine = self._avoid(attempt, now)
            if outcome.charge is not Charge.NOTHING:
                # With no other worker to leave it to, keeping away would not help.
                if called is not None:
                    self._give_up(called, now)
            elif kind and outcome.alike and not self._is_nowhere(called, now):
                all_of_it = self._shun(kind, outcome.message.partition("; left to ")[0], now)
                # Else this task would come first each time, on each of two workers that both cannot run it.
                mine.until = max(mine.until, all_of_it.until + pause_s(all_of_it.failed))
        elif outcome.quota:
            return  # the limit holds it back for as long as is needed
        elif outcome.code is Code.TRY_LATER or outcome.rests:
            self._tasks[key(attempt.name.id)] = _Pause(0, now + COOLDOWN_S, outcome.message)
        elif outcome.status is Status.SUCCESS and kind:
            self._types[kind] = _Pause(-1)

    def keys(self) -> set[str]:
        """Return the tasks that are to be left to others now."""
        if not self._tasks:
            return set()
        now = self._clock.monotonic()
        self._tasks = {task: pause for task, pause in self._tasks.items() if pause.until + MOST_S > now}
        return {task for task, pause in self._tasks.items() if pause.until > now}

    def avoids(self) -> dict[str, str]:
        """Return the latest of them, with the reason of each."""
        now = self._clock.monotonic()
        found = {task: pause.why for task, pause in self._tasks.items() if pause.until > now}
        return dict(list(found.items())[-PAUSES_REPORTED:])

    def shuns(self) -> dict[str, str]:
        """Return the types and modules that are to be left to others now, with the reason of each."""
        now = self._clock.monotonic()
        return {kind: pause.why for kind, pause in self._types.items() if pause.until > now}

    def _give_up(self, called: str, now: float) -> None:
        """Remember a callable that every worker has looked for in vain."""
        self._nowhere = {each: until for each, until in self._nowhere.items() if until > now and each != called}
        self._nowhere[called] = now + NOWHERE_S
        if len(self._nowhere) > PAUSES_REMEMBERED:
            del self._nowhere[next(iter(self._nowhere))]

    def _is_nowhere(self, called: str | None, now: float) -> bool:
        return called is not None and self._nowhere.get(called, now) > now

    def _avoid(self, attempt: Attempt, now: float) -> _Pause:
        pause = self._tasks.pop(key(attempt.name.id), None) or _Pause()
        pause.failed += 1
        pause.until, pause.why = now + pause_s(pause.failed), attempt.judged.message[:SAID] if attempt.judged else ""
        self._tasks[key(attempt.name.id)] = pause
        if len(self._tasks) > PAUSES_REMEMBERED:
            del self._tasks[next(iter(self._tasks))]
        return pause

    def _shun(self, kind: str, why: str, now: float) -> _Pause:
        pause = self._types.pop(kind, None) or _Pause()
        self._types[kind] = pause
        if len(self._types) > SHUNNED and (oldest := next(filter(_is_module, self._types), None)) is not None:
            del self._types[oldest]
        if now >= pause.until:  # else it was here already when the pause began
            pause.failed += 1
            pause.until, pause.why = now + pause_s(pause.failed), f"it could not run the last one: {why[:SAID]}"
        return pause


def _is_module(kind: str) -> bool:
    return kind.startswith(MODULE)
