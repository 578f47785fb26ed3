"""The world `urgent`: tasks of all priorities that share one unit, a lock or the cpus of a machine; and their laws.

Laws: no task starts while a more urgent one has waited for a while for nothing but what less urgent tasks hold that
no worker has taken. So nobody waits behind what cannot move. And of the cpus that a ready task needs no worker takes
any for less urgent ones, as soon as it knows that task.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import TaskName, key, parse_task
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.limited import KNOWN_S
from tests.sim.workload import SETTINGS, Client

ROUNDS, PLAIN = 4, 8
# In so many steps a leader has seen all that it has to.
STEPS = 3
OF_URGENCY = (
    SETTINGS
    + b"""
[limits.one]
max = 1
"""
)
KINDS = ("one", "lock", "both")
# In so long (s) a worker that works has listed what is ready.
LISTED_S = 5.0
# A step beats at most once before a call, if it is late; a second beat is of a later step.
BEATS = 2
# Cpus, by the beginning of the id; each machine has 8. Of the small ones a machine always runs two.
CPUS = {"part": 4, "big": 8}
MACHINE = 8
LOWS, HIGHS = ("low", "background"), ("high", "critical", "normal", "low")


def shared_by(task_id: str) -> frozenset[str]:
    """What a task shares with others, by its id: the unit, the lock, or both."""
    kind = task_id.partition("-")[0]
    return frozenset({"one", "lock"} if kind == "both" else {kind}) & {"one", "lock"}


def cpus(task_id: str) -> int:
    """How many cpus a task requires, by its id."""
    return CPUS.get(task_id.partition("-")[0], 0)


class UrgentClient(Client):
    """Submits many plain tasks, then one of low priority that shares something, then one that may be more urgent."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        for number in range(ROUNDS):
            kinds = ["part" if draw("part", number, n) < draw("parts") else "plain" for n in range(PLAIN)]
            self._submit([self._plain(f"{kind}-{number}-{n}") for n, kind in enumerate(kinds)])
            if draw("big", number) < draw("bigs"):
                self._submit([self._plain(f"big-{number}") | {"priority": "high"}])
            for which, priorities in (("first", LOWS), ("second", HIGHS)):
                kind = KINDS[int(draw("shares", which, number) * len(KINDS))]
                name = f"{kind}-{which}-{number}"
                self._submit([self._sharing(name, priorities[int(draw("urgency", name) * len(priorities))])])
                if draw("pause", name) < 0.5:
                    self._scheduler.sleep(3.0 * draw("between", name))
                if draw("cancel", name) < 0.1:
                    self._cancel(name)
        self.done = True

    def _plain(self, name: str) -> dict[str, Any]:
        plain = {"id": name, "type": "wide", "command": ["work"], "dependencies": [], "max_retries": 2}
        return plain | ({"requires": {"cpus": cpus(name)}} if cpus(name) else {})

    def _sharing(self, name: str, priority: str) -> dict[str, Any]:
        task = self._plain(name) | {"priority": priority}
        if "one" in shared_by(name):
            task["uses"] = ["one"]
        if "lock" in shared_by(name):
            task["locks"] = {"write": ["shared"]}
        return task


@dataclass(slots=True)
class UrgentLaws(Laws):
    """The laws about urgency, besides all others. used: when a task that shares this was last claimed, or left that;
    steps: when this leader published snapshots, each at the end of a step. first: the most urgent of the ready tasks
    that need cpus, and since when; taken: when each claim was made that is still there, by its node and key; beats:
    how often each node has beaten since then.
    """

    waits_since: dict[str, tuple[TaskName, float]] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    leads: tuple[str, float] = ("", 0.0)
    steps: list[float] = field(default_factory=list)
    first: tuple[TaskName | None, float] = (None, 0.0)
    taken: dict[tuple[str, str], float] = field(default_factory=dict)
    beats: Counter[str] = field(default_factory=Counter)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target = self.scheduler.now, dst.partition("/")[0]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
            self.steps.clear()
        if target == "status":
            self.steps = [*self.steps[-STEPS:], now]
        if target == "heartbeats":
            self.beats[dst.partition("/")[2].partition(".")[0]] += 1
        for path in (src, dst):
            name = parse_task(path.rpartition("/")[2]) if path.startswith("claimed/") else None
            self.used |= dict.fromkeys(shared_by(name.id) if name is not None else (), now)
        name = parse_task(dst.rpartition("/")[2])
        if name is None:
            return
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
        self.first = (None, 0.0)
        self.used = dict.fromkeys(("one", "lock"), self.scheduler.now)

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
            if holders and all(one.rank > waits.rank for one in holders) and self._first(waits, wanted):
                raise Broken(
                    f"urgency: {started.id} starts at {now:.3f} s, and {waits.id} has waited since {since:.3f} s for "
                    f"nothing but what {[one.id for one in holders]} hold in ready/"
                )

    def _know_first(self, now: float) -> None:
        ready = [parse_task(p.rpartition("/")[2]) for p in self.tokens.values() if p.startswith("ready/")]
        hungry = [name for name in ready if name is not None and cpus(name.id)]
        first = min(hungry, key=lambda name: (name.rank, name.order), default=None)
        if first != self.first[0]:
            self.first = (first, now)
            self.beats.clear()

    def _takes_what_is_kept(self, started: TaskName, node: str, now: float) -> None:
        """A worker knows what is ready within a while: it has beaten twice since, so that this step, which may have
        been frozen, began later. One that could not run an attempt leaves that task alone.
        """
        first, since = self.first
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
