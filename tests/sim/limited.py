"""The world `limits`: tasks that use counted limits, a rate, a quota and limits per worker; and the laws about them.

Laws: units of ready and claimed tasks never exceed `max`; claims within any window of a rate never exceed its count;
no attempt starts under a closed quota that its worker has listed; while a quota is tried, one task goes at a time; a
task that wants several units is not overtaken; a report of a quota charges nothing.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spoold.protocol.names import EndedName, TaskName, key, parse_returned, parse_task
from spoold.protocol.request import Verb, parse_request
from spoold.runner.job import Job, Kind
from spoold.system.scratch import MemoryScratch
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.machine import TRUE_WALL
from tests.sim.programs import Execution, Programs
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import SETTINGS, Client

TASKS = 26
PAIR_MAX = 2
RATE_COUNT, RATE_S = 3, 4.0
QUOTA_MAX_S = 12.0
# How long (s) a quota is said to be used up: at least, and at most so much more.
USED_UP_S, MORE_S = 3.0, 6.0
# What two clocks may differ in, and an answer of the server hide (s).
CLOCKS_S = 1.5
# A leader knows what has waited so long (s), if it has led for as long.
KNOWN_S = 6.0
OF_LIMITS = (
    SETTINGS
    + f"""
[limits.pair]
max = {PAIR_MAX}
[limits.rate]
rate = {{count = {RATE_COUNT}, per_s = {RATE_S}}}
[limits.llm]
max = 3
quota_max_s = {QUOTA_MAX_S}
[limits.own]
per = "worker"
max = 1
rate = {{count = 2, per_s = 2}}
quota_max_s = {QUOTA_MAX_S}
[types.typed]
uses = ["pair"]
""".encode()
)
# The workers that have the label of some tasks that use `llm`: these wait in a lane of their own.
RARE = frozenset({"w2"})
KINDS = ("pair", "rate", "llm", "own", "plain", "typed")


def kind_of(task_id: str) -> str:
    """What a task uses, by its id."""
    return task_id.partition("-")[0]


def units_of(task_id: str) -> int:
    """How many units of it."""
    return 2 if "-two-" in task_id else 1


def of_pair(task_id: str) -> int:
    """The units of `pair` that a task uses."""
    return units_of(task_id) if kind_of(task_id) in ("pair", "typed") else 0


class Serving(MemoryScratch):
    """Some attempts say while they run that their limits serve them; later they may find the quota used up all the
    same.
    """

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        if name == "progress.json" and zlib.crc32(key.encode()) % 3 == 0:
            return b'{"served": true}'
        return super().read(key, name, offset, limit)


class LimitedClient(Client):
    """Submits tasks that use limits."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        names: list[str] = []
        for number in range(TASKS):
            kind = KINDS[int(draw("uses", number) * len(KINDS))]
            two = kind in ("pair", "rate") and draw("units", number) < 0.3
            rare = kind == "llm" and draw("rare", number) < 0.5
            name = f"{kind}{'-two' if two else ''}{'-rare' if rare else ''}-{number}"
            if draw("pause", name) < 0.4:
                self._scheduler.sleep(3.0 * draw("between", name))
            self._submit([self._limited(name, names)])
            names.append(name)
            if draw("cancel", name) < 0.05:
                self._cancel(name)
        self.done = True

    def _limited(self, name: str, earlier: list[str]) -> dict[str, Any]:
        kind = kind_of(name)
        parents = [p for p in earlier[-4:] if self._weather.draw("needs", name, p) < 0.08]
        task: dict[str, Any] = {
            "id": name,
            "type": "typed" if kind == "typed" else "wide",
            "command": ["work"],
            "max_retries": 2,
        }
        task["dependencies"] = parents
        if kind in ("pair", "rate", "llm", "own"):
            task["uses"] = {kind: units_of(name)}
        if "-rare-" in name:  # another lane, which one worker alone serves
            task["requires"] = {"labels": ["rare"]}
        return task


class LimitedPrograms(Programs):
    """Some attempts find their quota used up, and say so in their result."""

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        job = slot[0].key
        if kind == "exited" and code == 75 and self.scratch is not None:
            limit = kind_of(job)
            after_s = USED_UP_S + MORE_S * self._weather.draw("used up", job)
            said = {"quota": {"limit": limit, "retry_after_s": after_s}}
            self.scratch.write(job, "result.json", json.dumps(said).encode())
        super()._end(slot, kind, code, moment)


def limited_exit(weather: Weather, job: str) -> int:
    """How an attempt ends: nearly all well, some find their quota used up, some fail once."""
    if kind_of(job) in ("llm", "own"):
        return 75 if weather.draw("quota", job) < 0.25 else 0
    return 1 if weather.draw("try", job) < 0.1 and job.endswith(".1") else 0


class ListeningServer(Server):
    """Keeps when each machine listed control/ (s), by the process that did."""

    def __init__(self, clock: Any, rolls_back: bool) -> None:
        super().__init__(clock, rolls_back)
        self.listings: dict[str, list[float]] = {}

    def _list(self, path: str) -> list[str]:
        laws = self.onlooker
        if path == "control" and isinstance(laws, LimitedLaws) and laws.scheduler.current is not None:
            self.listings.setdefault(laws.scheduler.current.name, []).append(laws.scheduler.now)
        return self.fs.list(path)


@dataclass(slots=True)
class Report:
    """A request `quota`: when it was published, until when it closes, and when it was removed (true time, s)."""

    limit: str
    published: float
    until: float
    removed: float = float("inf")


@dataclass(slots=True)
class LimitedLaws(Laws):
    """The laws about limits, besides all others. made_ready: when, and by which leader, a token came into ready/."""

    made_ready: dict[str, tuple[float, str]] = field(default_factory=dict)
    waits_since: dict[str, tuple[str, float]] = field(default_factory=dict)
    claims: list[tuple[float, str]] = field(default_factory=list)
    reports: dict[str, Report] = field(default_factory=dict)
    leads: tuple[str, float] = ("", 0.0)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target, file = self.scheduler.now, dst.partition("/")[0], dst.rpartition("/")[2]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
        name = parse_task(file)
        if target == "waiting" and name is not None:
            self.waits_since[key(name.id)] = (file, now)
        elif target == "ready" and name is not None:
            self.made_ready[key(name.id)] = (now, self.conduct.holder)
            self.waits_since.pop(key(name.id), None)
            if key(name.id) not in self.conduct.strangers:
                self._no_overtaking(name)
                self._enough_left(dst)
        elif target == "claimed" and name is not None and src.startswith("ready/"):
            self._rate_and_trial(name, now)
        elif target == "returned" and (said := parse_returned(file)) is not None:
            self._charged(said, src)
        elif target == "control" and (request := parse_request(file)) is not None and request.verb is Verb.QUOTA:
            until = datetime.fromisoformat(json.loads(self.server.fs.read(dst))["until"]).timestamp() - TRUE_WALL
            self.reports[dst] = Report(request.target, now, until)

    def removed(self, path: str) -> None:
        """After every unlink."""
        Laws.removed(self, path)
        if path in self.reports:
            self.reports[path].removed = self.scheduler.now

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        if self.server.rolls_back:
            self.claims.clear()
            self.made_ready.clear()
            self.waits_since.clear()
            self.reports.clear()

    def check_runs(self, executions: list[Execution]) -> None:
        """No attempt began under a quota that its worker had listed, and none without a listing after its claim."""
        assert isinstance(self.server, ListeningServer)
        if self.server.rolls_back and self.server.cuts:
            return
        self._own_limits(executions)
        for run in executions:
            if kind_of(run.task) not in ("llm", "pair", "rate", "own"):
                continue
            claimed = self.begun.get((key(run.task), run.attempt))
            heard = [at for at in self.server.listings.get(run.worker.rpartition("-")[0], []) if at <= run.begin]
            last = max(heard, default=-1.0)
            if any(o is not run and o.worker == run.worker and o.end == run.begin for o in executions):
                raise Broken(f"quota: {run} waited in a slot behind another, and began without a listing")
            if claimed is not None and last < claimed:
                raise Broken(f"quota: {run} began, and its worker had not listed control/ since it claimed it")
            for report in self.reports.values():
                if report.limit != kind_of(run.task) or not abs(report.until - report.published) <= QUOTA_MAX_S:
                    continue
                if report.published < run.begin < min(report.until - CLOCKS_S, report.removed) and (
                    report.published < last
                ):
                    raise Broken(f"quota: {run} began under {report}, which its worker had listed at {last:.3f} s")

    def _own_limits(self, executions: list[Execution]) -> None:
        """Of a limit per worker with max = 1 one task runs at a time on each."""
        last: dict[str, Execution] = {}
        for run in sorted(executions, key=lambda run: run.begin):
            before = last.get(run.worker)
            if kind_of(run.task) == "own" and before is not None and (before.end is None or before.end > run.begin):
                raise Broken(f"own limit: {run} began while {before} ran")
            if kind_of(run.task) == "own":
                last[run.worker] = run

    def _enough_left(self, dst: str) -> None:
        strangers = self.conduct.strangers
        there = {k: p for k, p in self.tokens.items() if p.startswith(("ready/", "claimed/")) and k not in strangers}
        used = sum(of_pair(k) for k in there)
        if used > PAIR_MAX and not self.conduct.amazed:
            raise Broken(f"limit: {dst} is made ready, and {sorted(k for k in there if of_pair(k))} use {used} units")

    def _rate_and_trial(self, name: TaskName, now: float) -> None:
        if key(name.id) in self.conduct.strangers or self.conduct.amazed:
            return
        if kind_of(name.id) == "rate":
            self.claims.append((now, name.id))
            self.claims = [(at, other) for at, other in self.claims if now - at < RATE_S]
            if sum(units_of(other) for _, other in self.claims) > RATE_COUNT:
                raise Broken(f"rate: {name.id} is claimed at {now:.3f} s, after {self.claims}")
        mine = self.made_ready.get(key(name.id))
        standing = [r for r in self.reports.values() if r.limit == "llm" and now < r.removed]
        if kind_of(name.id) != "llm" or not standing or mine is None:
            return
        over = max(report.until for report in standing)
        leader = self.leads
        if mine[1] == leader[0] and mine[0] > max(over + CLOCKS_S, leader[1]):
            tried = [
                other
                for other, path in self.tokens.items()
                if path.startswith("claimed/")
                and kind_of(other) == "llm"
                and self.made_ready.get(other, (0.0, ""))[0] > max(over + CLOCKS_S, leader[1])
            ]
            if len(tried) > 1:
                raise Broken(f"trial: {sorted(tried)} are claimed while {standing} stand")

    def _no_overtaking(self, name: TaskName) -> None:
        """A task that uses one unit goes before an older one that wants two, which has waited for long."""
        now = self.scheduler.now
        if of_pair(name.id) != 1 or now - self.leads[1] < KNOWN_S or self.conduct.amazed:
            return
        for other, (file, since) in self.waits_since.items():
            waits = parse_task(file) if self.tokens.get(other, "").startswith("waiting/") else None
            if waits is None or of_pair(other) != 2 or waits.conditional or waits.delay_ms or now - since < KNOWN_S:
                continue
            if (waits.rank, waits.order) < (name.rank, name.order):
                raise Broken(f"fifo: {name.id} goes before {waits.id}, which has waited for {now - since:.1f} s")

    def _charged(self, said: tuple[TaskName, str], src: str) -> None:
        after, worker = said
        before = parse_task(src.rpartition("/")[2])
        result = f"results/{EndedName(after.id, after.attempt - 1, worker).encode()}"
        if before is None or not self.server.exists(result):
            return
        told = json.loads(self.server.fs.read(result))
        output, code = told.get("output"), (told.get("error") or {}).get("code")
        if code == "TRY_LATER" and isinstance(output, dict) and "quota" in output:
            if (after.failures, after.crashes) != (before.failures, before.crashes):
                raise Broken(f"charge: {src} found a quota used up, and goes back as {after}")
            if output["quota"]["limit"] == "llm" and not self.reports:
                raise Broken(f"quota: {src} goes back, and its report was never published")


def check_limited_ends(laws: Laws, cancelled: set[str]) -> None:
    """Every task has ended, and well, but for those that were cancelled and their children."""
    failed = set[str]()
    for asked in laws.asked.values():
        path = laws.tokens.get(key(asked.id), "")
        if path.startswith("completed/"):
            continue
        if not path.startswith("failed/"):
            raise Broken(f"liveness: {asked.id} has not ended: {path}; {sorted(laws.server.fs.files())}")
        said = json.loads(laws.server.fs.read(path.replace("failed/", "results/", 1)))
        if said["error"]["code"] not in ("CANCELLED", "DEPENDENCY_FAILED"):
            raise Broken(f"ends: {asked.id} failed with {said['error']}")
        failed.add(key(asked.id))
    if failed and not cancelled:
        raise Broken(f"ends: {sorted(failed)} failed, and nothing was cancelled")
