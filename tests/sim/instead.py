"""The world `instead`: tasks whose account is often out, and another type as which they may run; and the laws.

Laws: a task goes to ready/ as another type only while a limit of its own is closed; the limit of the other type holds
for all that are ready or claimed as that, over any change of leader; an attempt runs as the type of the lane from
which it was claimed, and its record says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.lanes import parse_lane
from spoold.protocol.names import key, parse_ended, parse_task
from spoold.runner.job import Job, Kind
from spoold.worker.handlers.handler import Handler
from tests.sim.conduct import Broken
from tests.sim.limited import CLOCKS_S, MORE_S, QUOTA_MAX_S, USED_UP_S, LimitedLaws, kind_of
from tests.sim.machine import CONFIG, HANDLERS, KINDS
from tests.sim.programs import Execution, Programs
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import SETTINGS, Client

TASKS = 26
OTHER_MAX = 2
# For so long (s) a leader may go by what it has listed, and by its own date.
LATE_S = 6.0
OF_INSTEAD = (
    SETTINGS
    + f"""
[limits.account]
max = 3
quota_max_s = {QUOTA_MAX_S}
[limits.other]
max = {OTHER_MAX}
[types.coder]
uses = ["account"]
[types.coder-b]
uses = ["other"]
""".encode()
)
TYPES = ("coder", "coder-b")
ALL = (*KINDS, *TYPES)
OFFERED = CONFIG.model_copy(update={"handlers": {**HANDLERS, **{kind: Handler(command=("work",)) for kind in TYPES}}})
LISTS = {"coder": ("coder-b",)}


class InsteadClient(Client):
    """Submits tasks for both accounts, most of them for the one that is often out."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        for number in range(TASKS):
            kind = "coder" if draw("kind", number) < 0.75 else "coder-b"
            name = f"{kind}-{number}" if kind == "coder" else f"other-{number}"
            if draw("pause", name) < 0.4:
                self._scheduler.sleep(3.0 * draw("between", name))
            self._submit([{"id": name, "type": kind, "input": {}, "max_retries": 2, "dependencies": []}])
            if draw("cancel", name) < 0.05:
                self._cancel(name)
        self.done = True


class InsteadPrograms(Programs):
    """Some attempts under the first account find its quota used up, and say so; none under the other one does."""

    _shared: Server

    def attach(self, scheduler: Scheduler, server: Server) -> None:
        self._shared = server

    def _begin(self, job: Job, moment: float) -> Execution:
        laws = self._shared.onlooker
        if isinstance(laws, InsteadLaws):
            laws.begins(job)
        return super()._begin(job, moment)

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        job = slot[0]
        if kind == "exited" and code == 75:
            if job.own["SPOOL_TASK_TYPE"] != "coder":
                code = 0
            elif self.scratch is not None:
                after_s = USED_UP_S + MORE_S * self._weather.draw("used up", job.key)
                said = {"quota": {"limit": "account", "retry_after_s": after_s}}
                self.scratch.write(job.key, "result.json", json.dumps(said).encode())
        super()._end(slot, kind, code, moment)


def instead_exit(weather: Weather, job: str) -> int:
    """How an attempt ends: some find their quota used up, some fail once, all others end well."""
    if kind_of(job) == "coder" and weather.draw("quota", job) < 0.35:
        return 75
    return 1 if weather.draw("try", job) < 0.1 and job.endswith(".1") else 0


@dataclass(slots=True)
class InsteadLaws(LimitedLaws):
    """The laws about other types, besides all others. runs_as: by task and attempt, the type of the lane from which
    it was claimed; stood_in: that of the lane in which a task is, or was before its claim.
    """

    runs_as: dict[tuple[str, int], str] = field(default_factory=dict)
    stood_in: dict[str, str] = field(default_factory=dict)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        LimitedLaws.renamed(self, src, dst, replaced)
        source, target = (path.split("/") for path in (src, dst))
        name = parse_task(target[-1])
        if target[0] in ("completed", "failed"):
            self._recorded(target[-1])
        if name is None:
            return
        if target[0] == "ready" and (lane := parse_lane(target[1])) is not None:
            self.stood_in[key(name.id)] = lane.type
            if key(name.id) not in self.conduct.strangers and not self.conduct.amazed:
                if lane.instead_of:
                    self._is_closed(dst)
                self._other_has_room(dst)
        elif target[0] == "claimed" and source[0] == "ready" and key(name.id) in self.stood_in:
            self.runs_as[key(name.id), name.attempt] = self.stood_in[key(name.id)]
        elif target[0] == "waiting" and (lane := parse_lane(target[1])) is not None and lane.instead_of:
            raise Broken(f"instead: {dst} waits as another type")

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        LimitedLaws.rebuilt(self)
        if self.server.rolls_back:
            self.runs_as.clear()
            self.stood_in.clear()

    def begins(self, job: Job) -> None:
        """An attempt begins."""
        task, _, attempt = job.key.rpartition(".")
        known, kind = self.runs_as.get((key(task), int(attempt))), job.own["SPOOL_TASK_TYPE"]
        if known is not None and known != kind:
            raise Broken(f"instead: {job.key} runs as {kind}, and was claimed as {known}")

    def _recorded(self, file: str) -> None:
        ended = parse_ended(file)
        known = None if ended is None else self.runs_as.get((key(ended.id), ended.attempt))
        if ended is None or known is None or (key(ended.id), ended.attempt) not in self.attempts:
            return
        said: dict[str, Any] = json.loads(self.server.fs.read(f"results/{file}"))
        if said["status"] == "success" and said["type"] != known:
            raise Broken(f"instead: results/{file} says {said['type']}, and it was claimed as {known}")

    def _is_closed(self, dst: str) -> None:
        if self.server.rolls_back and self.server.cuts:
            return
        now = self.scheduler.now
        late = LATE_S + CLOCKS_S
        # One whose content a leader cannot read just now counts for as long as any may.
        for one in self.reports.values():
            if one.published <= now <= min(one.published + QUOTA_MAX_S, one.removed) + late:
                return
        raise Broken(f"instead: {dst} goes as another type at {now:.3f} s, and no limit is closed: {self.reports}")

    def _other_has_room(self, dst: str) -> None:
        active = {k: p for k, p in self.tokens.items() if p.startswith(("ready/", "claimed/"))}
        there = [k for k in active if k not in self.conduct.strangers and self.stood_in.get(k) == "coder-b"]
        if len(there) > OTHER_MAX and not self.conduct.amazed:
            raise Broken(f"instead: {dst} is made ready, and {sorted(there)} use limit other, of which there is less")
