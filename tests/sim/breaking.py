"""The world `breakers`: a type whose attempts all fail until a person has mended something; and the laws about it.

Laws: so many failures in a row open the breaker; while the checkpoints of a leader show it open, that leader has
sent one task of the type at a time, until the first has succeeded; after one that it sent has failed, it sends no
other for `open_s`, which ends at a date; attempts that say nothing count nowhere; no failure counts twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.feed_checkpoint import parse_checkpoint
from spoold.protocol.names import EndedName, TaskName, key, parse_ended, parse_lease, parse_returned, parse_task
from spoold.runner.job import Job, Kind
from tests.sim.conduct import Broken
from tests.sim.laws import Laws
from tests.sim.limited import CLOCKS_S, kind_of
from tests.sim.programs import Programs
from tests.sim.weather import Weather
from tests.sim.workload import SETTINGS, Client

TASKS = 30
FAILURES, OPEN_S = 3, 5.0
# Until then (true time, s) each attempt of type flaky fails, and then none.
MENDED_S = 45.0
OF_BREAKERS = (
    SETTINGS
    + f"""
[types.flaky]
breaker = {{failures = {FAILURES}, open_s = {OPEN_S}}}
[types.steady]
breaker = {{failures = 1, open_s = {OPEN_S}}}
""".encode()
)
KINDS = ("flaky", "flaky", "flaky", "steady", "wide")
# A leader's term: who leads, and in which epoch.
Term = tuple[str, int]


class BrokenTypeClient(Client):
    """Submits tasks of a type that fails, of one that only asks to be tried later or is cancelled, and others."""

    def live(self) -> None:
        """Submit everything."""
        draw = self._weather.draw
        for number in range(TASKS):
            kind = KINDS[int(draw("type", number) * len(KINDS))]
            name = f"{kind}-{number}"
            if draw("pause", name) < 0.4:
                self._scheduler.sleep(2.0 * draw("between", name))
            self._submit([{"id": name, "type": kind, "command": ["work"], "dependencies": [], "max_retries": 50}])
            if draw("cancel", name) < (0.4 if kind == "steady" else 0.05):
                self._cancel(name)
        self.done = True


class MendedPrograms(Programs):
    """What tasks of type flaky need is broken until it is mended."""

    def _end(self, slot: list[Job], kind: Kind, code: int | None, moment: float) -> None:
        if kind == "exited" and kind_of(slot[0].key) == "flaky":
            code = 1 if self._truly(moment) < MENDED_S else 0
        super()._end(slot, kind, code, moment)


def steady_exit(weather: Weather, job: str) -> int:
    """How an attempt ends that does not fail: some ask to be tried later."""
    return 75 if weather.draw("later", job) < 0.3 else 0


@dataclass(slots=True)
class BreakerLaws(Laws):
    """The laws about breakers, besides all others.

    failed: when (s) attempts of type flaky failed; well: whether one has succeeded. sent: of a token that was made
    ready, by which leader in which term, and when; put_off: until when (s) that leader may send no other. opened:
    since when (s) the checkpoints of this term show the breaker open.
    """

    failed: list[float] = field(default_factory=list)
    well: bool = False
    sent: dict[tuple[str, int], tuple[Term, float]] = field(default_factory=dict)
    put_off: dict[Term, float] = field(default_factory=dict)
    term: Term = ("", 0)
    opened: float = float("inf")

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        target, file = dst.partition("/")[0], dst.rpartition("/")[2]
        if target == "master" and (lease := parse_lease(file)) is not None:
            if (lease.holder, lease.epoch) != self.term:
                self.term, self.opened = (lease.holder, lease.epoch), float("inf")
        elif target == "ready" and (name := parse_task(file)) is not None and kind_of(name.id) == "flaky":
            self._one_tries(name)
        elif target in ("completed", "failed") and (ended := parse_ended(file)) is not None:
            self._see_end(ended)
        elif target == "returned" and (back := parse_returned(file)) is not None:
            self._see_end(EndedName(back[0].id, back[0].attempt - 1, back[1]))
        elif target == "status" and (checkpoint := parse_checkpoint(file)) is not None:
            states = json.loads(self.server.fs.read(dst))["states"]
            self._counted(states.get("breakers", {}), checkpoint.epoch)

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        self.opened = float("inf")

    def _see_end(self, ended: EndedName) -> None:
        path = f"results/{ended.encode()}"
        if kind_of(ended.id) != "flaky" or not self.server.exists(path):
            return
        said = json.loads(self.server.fs.read(path))
        if said["status"] == "success":
            self.well = True
        elif ((said.get("error") or {}).get("cause") or (said.get("error") or {}).get("code")) == "EXIT_NONZERO":
            self.failed.append(self.scheduler.now)
            term, at = self.sent.get((key(ended.id), ended.attempt), (("", 0), 0.0))
            if term == self.term and at > self.opened:
                self.put_off[term] = self.scheduler.now + OPEN_S - CLOCKS_S

    def _one_tries(self, name: TaskName) -> None:
        mine, now = key(name.id), self.scheduler.now
        if mine in self.conduct.strangers or self.conduct.amazed:
            self.sent.pop((mine, name.attempt), None)
            return
        self.sent[mine, name.attempt] = self.term, now
        if self.well or self.opened == float("inf"):
            return
        if now < self.put_off.get(self.term, 0.0) and self.one_date:
            raise Broken(f"breaker: {name.id} is made ready at {now:.3f} s, and the last one that tried has failed")
        tried = [task for task, number in self.sent if task != mine and self._tries(task, number)]
        if tried:
            raise Broken(f"breaker: {name.id} is made ready at {now:.3f} s, and {sorted(tried)} still try")

    def _tries(self, task_key: str, attempt: int) -> bool:
        """Whether this leader has sent that attempt to try, and it has not ended."""
        path, (term, at) = self.tokens.get(task_key, ""), self.sent[task_key, attempt]
        there = parse_task(path.rpartition("/")[2]) if path.startswith(("ready/", "claimed/")) else None
        return there is not None and there.attempt == attempt and term == self.term and at > self.opened

    def _counted(self, rows: dict[str, list[Any]], epoch: int) -> None:
        failures, until, _ = rows.get("flaky", [0, None, ""])
        if "steady" in rows:
            raise Broken(f"breaker: nothing of type steady has failed, and {rows['steady']} is counted")
        if failures > len(self.failed) and not (self.server.rolls_back and self.server.cuts):
            raise Broken(f"breaker: {len(self.failed)} attempts have failed, and {rows['flaky']} is counted")
        if failures >= FAILURES and until is None:
            raise Broken(f"breaker: {failures} attempts have failed in a row, and it is closed")
        if epoch == self.term[1]:
            self.opened = float("inf") if until is None else min(self.opened, self.scheduler.now)


def mended_ends(laws: Laws, cancelled: set[str]) -> None:
    """Every task has ended, and well, but for those that were cancelled."""
    for asked in laws.asked.values():
        path = laws.tokens.get(key(asked.id), "")
        if path.startswith("completed/"):
            continue
        if not path.startswith("failed/"):
            raise Broken(f"liveness: {asked.id} has not ended: {path}; {sorted(laws.server.fs.files())}")
        said = json.loads(laws.server.fs.read(path.replace("failed/", "results/", 1)))
        if said["error"]["code"] != "CANCELLED" or asked.id not in cancelled:
            raise Broken(f"ends: {asked.id} failed with {said['error']}")
