"""The world `lent`: parents that wait lend the units of a limit to their children, and get them back.

Laws: of all ready and claimed tasks that have not lent them, no more use the limit than it has units; no program goes
on while its units are lent; no ready task takes units for which one that has waited asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.names import key, parse_task
from spoold.protocol.request import OF_A_LOAN, Verb, loan_mark, parse_request
from tests.sim import families
from tests.sim.conduct import Broken
from tests.sim.families import Families
from tests.sim.laws import Laws
from tests.sim.loaned import lent, loans
from tests.sim.workload import SETTINGS, Client

PAIR_MAX, USERS, OF_BOTH = 2, 0.8, 0.4
# A leader knows a request that has stood so long (s), if it has led for as long.
KNOWN_S = 4.0
OF_LENT = SETTINGS + f"\n[limits.pair]\nmax = {PAIR_MAX}\n".encode()
USES = {"pair": 1}
CHILDREN = re.compile(r"t\d+-c\d")
CHILD = {**families.CHILD, "uses": USES}


class LentClient(Client):
    """Nearly all tasks use one limit."""

    def _task(self, name: str, earlier: list[str]) -> dict[str, Any]:
        task = super()._task(name, earlier)
        if self._weather.draw("uses", name) < USERS:
            assert isinstance(self._laws, LentLaws)
            units = 2 if self._weather.draw("units", name) < OF_BOTH else 1
            self._laws.users[key(name)] = units
            task["uses"] = {"pair": units}
        return task


class LentPrograms(Families):
    """As families, under the law that nobody goes on with what others may have."""

    def go_on(self, attempt: str) -> None:
        """Its worker has let it."""
        task, mark = attempt.rpartition(".")[0], loan_mark(self._worker)
        for request in loans(self.server, *OF_A_LOAN):
            mine = key(request.target) == key(task) and request.unique.startswith(mark)
            if mine and not self.server.rolls_back and self.runs(attempt):
                raise Broken(f"goes on: {attempt} goes on, and {request} stands")
        super().go_on(attempt)


@dataclass(slots=True)
class LentLaws(Laws):
    """The laws about lent units. users: the units of the limit, by the key of the task; asks: since when (s) a loan
    stands as `regain`.
    """

    users: dict[str, int] = field(default_factory=dict)
    asks: dict[str, float] = field(default_factory=dict)
    leads: tuple[str, float] = ("", 0.0)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        now, target = self.scheduler.now, dst.partition("/")[0]
        if self.conduct.holder != self.leads[0]:
            self.leads = (self.conduct.holder, now)
        if dst.startswith(f"control/{Verb.REGAIN}."):
            self.asks[dst] = now
        name = parse_task(dst.rpartition("/")[2])
        known = name is not None and self._uses(key(name.id)) and key(name.id) not in self.conduct.strangers
        if target == "ready" and known:
            self._enough(dst)
            self._not_overtaken(dst)

    def removed(self, path: str) -> None:
        """After every unlink."""
        Laws.removed(self, path)
        since = self.asks.pop(path, None)
        request = parse_request(path.removeprefix("control/"))
        if since is not None and request is not None and key(request.target) not in self.conduct.strangers:
            self._enough(path)

    def rebuilt(self) -> None:
        """After a power cut: of what it undid nobody knows."""
        Laws.rebuilt(self)
        if self.server.rolls_back:
            self.asks.clear()

    def _uses(self, task_key: str) -> int:
        return self.users.get(task_key, int(CHILDREN.fullmatch(task_key) is not None))

    def _enough(self, what: str) -> None:
        away, strangers = lent(self.server, self.tokens), self.conduct.strangers
        used = [
            k
            for k, at in self.tokens.items()
            if at.startswith(("ready/", "claimed/")) and self._uses(k) and k not in away and k not in strangers
        ]
        units = sum(map(self._uses, used))
        if units > PAIR_MAX and not self.conduct.amazed:
            raise Broken(f"units: after {what} {sorted(used)} use {units} units, and {sorted(away)} have lent theirs")

    def _not_overtaken(self, what: str) -> None:
        now = self.scheduler.now
        away = {k for k, verb in lent(self.server, self.tokens).items() if verb is Verb.REGAIN and self._uses(k)}
        for path, since in self.asks.items():
            request = parse_request(path.removeprefix("control/"))
            known = min(now - since, now - self.leads[1]) > KNOWN_S
            if request is not None and key(request.target) in away and known and not self.conduct.amazed:
                raise Broken(f"overtaken: {what} goes first, and {path} has asked for {now - since:.1f} s")
