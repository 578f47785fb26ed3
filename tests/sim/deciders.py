"""People who decide: tasks on hold or with an approval, and answers that come early, late, twice and after all. Some
tasks come after others, and people send the work back to these.

What must hold is told in decided.py.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import SpoolError
from spoold.protocol.names import key
from spoold.protocol.request import OF_ONE_TASK, parse_request
from tests.sim.decided import CHOICES
from tests.sim.laws import Asked, Laws
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import Client

# How many people decide in a seed, at most, which worlds.py sets; each begins within so long (s).
DECIDERS, BEGIN_S = 0, 5.0
TASKS, PAUSE_S, EXPIRES_S = 3, 6.0, 12.0


class Decider(Client):
    """One person: submits tasks that wait for people, and decides. done: all have ended, and nothing is asked."""

    def __init__(self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws, number: int) -> None:
        super().__init__(scheduler, server, weather, laws, f"decider{number}")
        self._ids = [f"{self.base}-{n}" for n in range(TASKS)]
        self._holding: set[str] = set()
        self._above: dict[str, tuple[str, str]] = {}

    def live(self) -> None:
        """Submit, and decide as long as anything is open: the network may carry out a retry late."""
        for task_id in self._ids:
            self._submit_one(task_id)
        number = 0
        while True:
            open_ = [task_id for task_id in self._ids if not self._settled(task_id)]
            self.done = not open_
            for task_id in open_ or self._ids[:1]:
                number += 1
                self._scheduler.sleep(PAUSE_S * self._draw("pause", number) ** 2)
                if open_:
                    self._decide(task_id, number)

    def check(self) -> None:
        """What must hold in the end. Errors: Broken."""
        for task_id in self._ids:
            at = self._laws.tokens.get(key(task_id), "")
            if at.startswith("completed/"):
                said = json.loads(self._server.fs.read(at.replace("completed/", "results/", 1)))
                self._laws.decided.check_answer(key(task_id), said)

    def _draw(self, *what: object) -> float:
        return self._weather.draw(self.base, *what)

    def _submit_one(self, task_id: str) -> None:
        task: dict[str, Any] = {"id": task_id, "type": "wide", "command": ["work"], "max_retries": 5}
        kind = self._draw("kind", task_id)
        decided = self._laws.decided
        if kind < 0.7:
            task["approval"] = {"ask": "Which?", "choices": list(CHOICES)}
            decided.asking.add(key(task_id))
        if kind > 0.4:
            task["hold"] = "not yet"
            decided.held.add(key(task_id))
        if kind < 0.3:
            end = ("reject", "approve", "blue")[int(3 * self._draw("end", task_id))]
            task["approval"] |= {"expires_s": EXPIRES_S, "on_expire": end}
        if "approval" in task and self._draw("above", task_id) < 0.6:
            task["after"] = [self._put_before(task_id)]
        self._laws.asked[key(task_id)] = Asked(task_id, "wide", tuple(task.get("after", ())))
        self._insist(lambda spool: spool.submit(task))

    def _put_before(self, task_id: str) -> str:
        """Submit two tasks, one after the other, before this one; return the second."""
        first, second = self._above[task_id] = (f"{task_id}-1", f"{task_id}-2")
        for name, after in ((first, ()), (second, (first,))):
            task = {"id": name, "type": "wide", "command": ["work"], "max_retries": 9, "after": list(after)}
            self._laws.asked[key(name)] = Asked(name, "wide", after)
            self._insist(lambda spool, task=task: spool.submit(task))
        return second

    def _settled(self, task_id: str) -> bool:
        at = self._laws.tokens.get(key(task_id), "")
        if not at.startswith(("completed/", "failed/")):
            return False
        names = map(parse_request, self._server.fs.list("control"))
        return not any(one for one in names if one and one.verb in OF_ONE_TASK and key(one.target) == key(task_id))

    def _decide(self, task_id: str, number: int) -> None:
        """One act, once; what was lost on the way is done again later."""
        act, at = self._draw("act", number), self._laws.tokens.get(key(task_id), "")
        calm = self._weather.fair and number > 60
        if at.startswith("failed/"):
            if self._draw("again", number) < 0.3 and not calm:
                self._try(lambda spool: spool.retry(task_id))
        elif act < 0.5 and (key(task_id) in self._laws.decided.held or task_id in self._holding):
            self._try(lambda spool: spool.release_held(task_id))
        elif task_id in self._above and act < 0.75 and not calm:
            above = self._above[task_id][int(2 * self._draw("which", number))]
            self._try(lambda spool: spool.reject(task_id, reason="again", redo=above))
        elif task_id in self._above and not self._is_up_to_date(task_id):
            return  # an answer in advance would leave nothing to send back
        elif key(task_id) in self._laws.decided.asking and (act < 0.85 or calm):
            answer = CHOICES[int(2 * self._draw("answer", number))]
            self._try(lambda spool: spool.approve(task_id, answer))
        elif key(task_id) in self._laws.decided.asking and act < 0.95:
            self._try(lambda spool: spool.reject(task_id, reason="no"))
        elif not calm:
            self._holding.add(task_id)
            self._try(lambda spool: spool.hold(task_id))

    def _is_up_to_date(self, task_id: str) -> bool:
        """Whether what comes before a task has ended."""
        places = [self._laws.tokens.get(key(one), "") for one in self._above[task_id]]
        return all(at.startswith(("completed/", "failed/", "archive/")) for at in places)

    def _try(self, act: Any) -> None:
        with (
            contextlib.suppress(OSError, SpoolError),
            SpoolClient("/spool", filesystem=self._mount(), clock=self.clocks) as spool,
        ):
            act(spool)
