"""The world `urgent`: tasks of all priorities that share units, a lock or the cpus of a machine; and their laws.

Laws: no task starts while a more urgent one has waited for a while for nothing but what less urgent tasks hold that
no worker has taken. So nobody waits behind what cannot move. And of the cpus that a ready task needs no worker takes
any for less urgent ones, as soon as it knows that task. And a task that waits for nothing but what later ones hold is
passed by few of them: what it needs and has is kept for it until the rest is free, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import TaskName, key, order_micros, parse_returned, parse_task
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.limited import KNOWN_S
from tests.sim.programs import Programs
from tests.sim.workload import SETTINGS, Client

ROUNDS, PLAIN = 4, 8
# In so many steps a leader has seen all that it has to.
STEPS = 3
OF_URGENCY = (
    SETTINGS
    + b"""
[limits.one]
max = 1
[limits.two]
max = 2
[types.alone]
max_concurrent = 1
"""
)
# What tasks share: units of two limits, a lock, the only place of a type. The kind of a task names what it shares.
THINGS = ("one", "two", "lock", "alone")
KINDS = ("one", "lock", "one+lock")
# In so many of all seeds there are streams: of each thing that one task needs together, tasks that need it alone.
STREAMS = 0.3
# So many tasks of a stream have not ended at any time; it goes on until nobody needs things together, or so long (s).
DEEP, STREAM_S = 3, 40.0
LOOK_S = 0.3
# Streams begin so late at most (s): some when nothing goes wrong any more.
BEGIN_S = 25.0
# How long those of a stream take (s): at least, and at most so much more. Shorter ones seldom run at the same time.
TAKES_S, MORE_S = 1.0, 2.0
# So many tasks need things together.
PAIRS = 2
# For each thing that it needs, a known task is passed at most so often: by a task of which its leader thought that it
# had not gone yet, and by one that it let go while a move was in doubt, which may have taken what the task lacks.
PASSES = 2
# In line for locks a point of priority counts as much as so much age (s).
POINT_S = 60.0
# So long (s) a holder in ready/ whose turn was earlier keeps its locks from a more urgent task.
STANDS_S = 10.0
ALIVE = ("waiting/", "ready/", "claimed/", "returned/")
# In so long (s) a worker that works has listed what is ready.
LISTED_S = 5.0
# A step beats at most once before a call, if it is late; a second beat is of a later step.
BEATS = 2
# Cpus, by the beginning of the id; each machine has 8. Of the small ones a machine always runs two.
CPUS = {"part": 4, "big": 8}
MACHINE = 8
LOWS, HIGHS = ("low", "background"), ("high", "critical", "normal", "low")
TOGETHER = ("high", "critical", "normal")


def shared_by(task_id: str) -> frozenset[str]:
    """What a task shares with others, by its id."""
    return frozenset(task_id.partition("-")[0].split("+")) & {*THINGS}


def cpus(task_id: str) -> int:
    """How many cpus a task requires, by its id."""
    return CPUS.get(task_id.partition("-")[0], 0)


def comes_before(one: TaskName, other: TaskName) -> bool:
    """Whether a task may have its turn before another, also in line for locks, where a minute counts as one point of
    priority.
    """
    older_s = (order_micros(other.order) - order_micros(one.order)) / 1e6
    return (one.rank, one.order) < (other.rank, other.order) or older_s > POINT_S * (one.rank - other.rank)


def _task_at(path: str) -> TaskName | None:
    """The task that has not ended and has this path."""
    if not path.startswith(ALIVE):
        return None
    file = path.rpartition("/")[2]
    returned = parse_returned(file)
    return returned[0] if returned is not None else parse_task(file)


class UrgentClient(Client):
    """Submits many plain tasks, then one of low priority that shares something, then one that may be more urgent. Or
    streams of tasks of low priority that need one thing each, and some that need these things together.
    """

    def live(self) -> None:
        """Submit everything."""
        if self._weather.draw("streams") < STREAMS:
            self._stream()
        else:
            self._rounds()
        self.done = True

    def _stream(self) -> None:
        """Who needs things together comes when each is in use, so that it never finds all of them free by itself."""
        draw = self._weather.draw
        things = sorted(THINGS, key=lambda thing: draw("together", thing))[: 2 + (draw("three") < 0.2)]
        kinds = [*things, *(["plain"] if draw("beside") < 0.2 else [])]
        streams, together = list[str](), list[str]()
        self._scheduler.sleep(BEGIN_S * draw("begins"))
        until = self._scheduler.now + STREAM_S
        while self._scheduler.now < until and (len(together) < PAIRS or not all(map(self._begun, together))):
            missing = [(kind, DEEP - len(self._open(kind, streams))) for kind in kinds]
            names = [f"{kind}-stream-{len(streams) + n}" for kind, count in missing for n in range(count)]
            if names:
                self._submit([self._sharing(name, LOWS[int(draw("urgency", name) * len(LOWS))]) for name in names])
            streams += names
            flows = all(any(map(self._begun, self._open(kind, streams))) for kind in things)
            if flows and len(together) < PAIRS:
                name = f"{'+'.join(things)}-together-{len(together)}"
                self._submit([self._sharing(name, TOGETHER[int(draw("urgency", name) * len(TOGETHER))])])
                together.append(name)
            self._scheduler.sleep(LOOK_S)

    def _open(self, kind: str, names: list[str]) -> list[str]:
        """Those of these tasks that are of this kind and have not ended."""
        return [name for name in names if name.startswith(f"{kind}-") and not self._ended(name)]

    def _begun(self, name: str) -> bool:
        return (key(name), 1) in self._laws.attempts or self._ended(name)

    def _rounds(self) -> None:
        draw = self._weather.draw
        for number in range(ROUNDS):
            kinds = ["part" if draw("part", number, n) < draw("parts") ** 0.5 else "plain" for n in range(PLAIN)]
            self._submit([self._plain(f"{kind}-{number}-{n}") for n, kind in enumerate(kinds)])
            if draw("big", number) < draw("bigs") ** 0.5:
                self._submit([self._plain(f"big-{number}") | {"priority": "high"}])
            for which, priorities in (("first", LOWS), ("second", HIGHS)):
                kind = KINDS[int(draw("shares", which, number) * len(KINDS))]
                name = f"{kind}-{which}-{number}"
                self._submit([self._sharing(name, priorities[int(draw("urgency", name) * len(priorities))])])
                if draw("pause", name) < 0.5:
                    self._scheduler.sleep(3.0 * draw("between", name))
                if draw("cancel", name) < 0.1:
                    self._cancel(name)

    def _plain(self, name: str) -> dict[str, Any]:
        plain = {"id": name, "type": "wide", "command": ["work"], "dependencies": [], "max_retries": 2}
        return plain | ({"requires": {"cpus": cpus(name)}} if cpus(name) else {})

    def _sharing(self, name: str, priority: str) -> dict[str, Any]:
        task = self._plain(name) | {"priority": priority}
        things = shared_by(name)
        # Who needs things together needs all of each.
        if limits := sorted(things & {"one", "two"}):
            task["uses"] = {limit: 2 if limit == "two" and len(things) > 1 else 1 for limit in limits}
        if "lock" in things:
            task["locks"] = {"write": ["shared"]}
        if "alone" in things:
            task["type"] = "alone"
        return task


class UrgentPrograms(Programs):
    """The tasks of streams take their time, and so do those that need a part of the cpus."""

    def _lasts_s(self, task: str, key: str) -> float:
        if ("-stream-" in task and shared_by(task) and not self._missed(task)) or cpus(task) == CPUS["part"]:
            return TAKES_S + MORE_S * self._weather.draw("takes", key)
        return super()._lasts_s(task, key)


@dataclass(slots=True)
class UrgentLaws(Laws):
    """The laws about urgency, besides all others. used: when a task that shares this was last claimed, or left that;
    steps: when this leader published snapshots, each at the end of a step. first: the most urgent of the ready tasks
    that need cpus, and since when; taken: when each claim was made that is still there, by its node and key; beats:
    how often each node has beaten since then. turn: by key, since when nobody has moved who comes before a waiting
    task and shares something with it; passed: who has passed it since then. full_at: when the share was last full.
    """

    waits_since: dict[str, tuple[TaskName, float]] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    leads: tuple[str, float] = ("", 0.0)
    steps: list[float] = field(default_factory=list)
    first: tuple[TaskName | None, float] = (None, 0.0)
    taken: dict[tuple[str, str], float] = field(default_factory=dict)
    beats: Counter[str] = field(default_factory=Counter)
    full_at: float = 0.0
    turn: dict[str, float] = field(default_factory=dict)
    passed: dict[str, list[str]] = field(default_factory=dict)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target = self.scheduler.now, dst.partition("/")[0]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
            self.steps.clear()
            self.passed.clear()
        if target == "status":
            self.steps = [*self.steps[-STEPS:], now]
        if self.server.full:
            self.full_at = now
        if target == "heartbeats":
            self.beats[dst.partition("/")[2].partition(".")[0]] += 1
        for path in (src, dst):
            name = parse_task(path.rpartition("/")[2]) if path.startswith("claimed/") else None
            self.used |= dict.fromkeys(shared_by(name.id) if name is not None else (), now)
        for name in filter(None, map(_task_at, (src, dst))):
            self._have_turns(name, now)
        name = parse_task(dst.rpartition("/")[2])
        if name is None:
            return
        if target == "ready" and key(name.id) not in self.conduct.strangers and not self.conduct.amazed:
            self._passes_few(name, now)
        if target == "waiting":
            self.waits_since[key(name.id)] = (name, now)
        else:
            self.waits_since.pop(key(name.id), None)
        if target == "claimed" and src.startswith("ready/") and not self.conduct.amazed:
            self._nobody_more_urgent_waits(name, now)
            self._takes_what_is_kept(name, dst.split("/")[1], now)
        self._know_first(now)
        standing = {(p.split("/")[1], k) for k, p in self.tokens.items() if p.startswith("claimed/")}
        self.taken = {claim: self.taken.get(claim, now) for claim in standing}

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        self.waits_since.clear()
        self.passed.clear()
        self.first = (None, 0.0)
        self.used = dict.fromkeys(THINGS, self.scheduler.now)

    def _nobody_more_urgent_waits(self, started: TaskName, now: float) -> None:
        if now - self.leads[1] < KNOWN_S or key(started.id) in self.conduct.strangers:
            return
        there = {k: parse_task(p.rpartition("/")[2]) for k, p in self.tokens.items() if p.startswith("ready/")}
        claimed = [k for k, path in self.tokens.items() if path.startswith("claimed/")]
        for task_key, (waits, since) in self.waits_since.items():
            wanted = shared_by(task_key)
            quiet = max((self.used.get(what, 0.0) for what in wanted), default=now)
            if waits.rank >= started.rank or waits.delay_ms or now - max(since, quiet) < KNOWN_S:
                continue
            if len(self.steps) <= STEPS or self.steps[-STEPS] < max(since, quiet):
                continue
            waiting = self.tokens.get(task_key, "").startswith("waiting/")
            if not waiting or any(wanted & shared_by(k) for k in claimed):
                continue
            holders = [one for k, one in there.items() if one is not None and wanted & shared_by(k)]
            if any(comes_before(one, waits) for one in holders) and now - max(since, quiet) < STANDS_S + KNOWN_S:
                continue
            if holders and all(one.rank > waits.rank for one in holders) and self._first(waits, wanted):
                raise Broken(
                    f"urgency: {started.id} starts at {now:.3f} s, and {waits.id} has waited since {since:.3f} s for "
                    f"nothing but what {[one.id for one in holders]} hold in ready/"
                )

    def _have_turns(self, moved: TaskName, now: float) -> None:
        """Who comes before a waiting task and shares something with it has its turn first."""
        for task_key, (waits, _) in self.waits_since.items():
            if shared_by(task_key) & shared_by(moved.id) and (waits.id == moved.id or comes_before(moved, waits)):
                self.turn[task_key] = now
                self.passed.pop(task_key, None)

    def _passes_few(self, goes: TaskName, now: float) -> None:
        """A task that waits for nothing but what later ones hold is passed by few of them, once that is known."""
        if now - self.leads[1] < KNOWN_S:
            return
        for task_key, (waits, since) in self.waits_since.items():
            wanted, turn = shared_by(task_key), max(since, self.turn.get(task_key, 0.0))
            if not wanted & shared_by(goes.id) or waits.id == goes.id or waits.delay_ms or now - turn < KNOWN_S:
                continue
            if not self.tokens.get(task_key, "").startswith("waiting/"):
                continue
            if len(self.steps) <= STEPS or self.steps[-STEPS] < turn:
                continue
            if any(comes_before(one, waits) for one in self._who_share(wanted) if one.id != waits.id):
                continue
            passed = self.passed.setdefault(task_key, [])
            passed.append(goes.id)
            if len(passed) > PASSES * len(wanted):
                raise Broken(
                    f"passed: {waits.id} waits since {since:.3f} s, and could go before all that share something "
                    f"with it since {turn:.3f} s; until {now:.3f} s {passed} went before it"
                )

    def _who_share(self, wanted: frozenset[str]) -> Iterator[TaskName]:
        """The tasks that have not ended and share one of these."""
        alive = (path for k, path in self.tokens.items() if path.startswith(ALIVE) and wanted & shared_by(k))
        return filter(None, map(_task_at, alive))

    def _know_first(self, now: float) -> None:
        ready = [parse_task(p.rpartition("/")[2]) for p in self.tokens.values() if p.startswith("ready/")]
        hungry = [name for name in ready if name is not None and cpus(name.id)]
        first = min(hungry, key=lambda name: (name.rank, name.order), default=None)
        if first != self.first[0]:
            self.first = (first, now)
            self.beats.clear()

    def _takes_what_is_kept(self, started: TaskName, node: str, now: float) -> None:
        """A worker knows what is ready within a while: it has beaten twice since, so that this step, which may have
        been frozen, began later. One that could not run an attempt leaves that task alone; and none looks at ready/
        while a full share takes no result.
        """
        first, since = self.first[0], max(self.first[1], self.full_at)
        if first is None or first.rank >= started.rank or first.attempt > 1 or not cpus(started.id):
            return
        if self.beats[node] < BEATS:
            return
        later = [key(started.id)]
        later += [k for (w, k), at in self.taken.items() if w == node and at > since + LISTED_S]
        taken = sum(map(cpus, later))
        if now > since + LISTED_S and taken + cpus(first.id) > MACHINE:
            raise Broken(
                f"urgency: {node} claims {started.id} at {now:.3f} s, of whose cpus {first.id} needs some, which is "
                f"more urgent and ready since {since:.3f} s"
            )

    def _first(self, waits: TaskName, wanted: frozenset[str]) -> bool:
        """Whether nobody waits that is as urgent and wants some of the same."""
        return not any(
            other.id != waits.id and other.rank <= waits.rank and wanted & shared_by(other.id)
            for other, _ in self.waits_since.values()
        )
