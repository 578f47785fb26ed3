"""The world `urgent`: tasks of all priorities that share one unit or one lock, among many others; and their law.

Law: no task starts while a more urgent one has waited for a while for nothing but what less urgent tasks hold that no
worker has taken. So nobody waits behind what cannot move.
"""

from __future__ import annotations

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
LOWS, HIGHS = ("low", "background"), ("high", "critical", "normal", "low")


def shared_by(task_id: str) -> frozenset[str]:
    """What a task shares with others, by its id: the unit, the lock, or both."""
    kind = task_id.partition("-")[0]
    return frozenset({"one", "lock"} if kind == "both" else {kind}) & {"one", "lock"}


class UrgentClient(Client):
    """Submits many plain tasks, then one of low priority that shares something, then one that may be more urgent."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        for number in range(ROUNDS):
            self._submit([self._plain(f"plain-{number}-{n}") for n in range(PLAIN)])
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
        return {"id": name, "type": "wide", "command": ["work"], "dependencies": [], "max_retries": 2}

    def _sharing(self, name: str, priority: str) -> dict[str, Any]:
        task = self._plain(name) | {"priority": priority}
        if "one" in shared_by(name):
            task["uses"] = ["one"]
        if "lock" in shared_by(name):
            task["locks"] = {"write": ["shared"]}
        return task


@dataclass(slots=True)
class UrgentLaws(Laws):
    """The law about urgency, besides all others. used: when a task that shares this was last claimed, or left that;
    steps: when this leader published snapshots, each at the end of a step.
    """

    waits_since: dict[str, tuple[TaskName, float]] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    leads: tuple[str, float] = ("", 0.0)
    steps: list[float] = field(default_factory=list)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target = self.scheduler.now, dst.partition("/")[0]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
            self.steps.clear()
        if target == "status":
            self.steps = [*self.steps[-STEPS:], now]
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

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        self.waits_since.clear()
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

    def _first(self, waits: TaskName, wanted: frozenset[str]) -> bool:
        """Whether nobody waits that is as urgent and wants some of the same."""
        return not any(
            other.id != waits.id and other.rank <= waits.rank and wanted & shared_by(other.id)
            for other, _ in self.waits_since.values()
        )
