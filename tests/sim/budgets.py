"""World `budgets`: every task draws on one purse, costs what it reserves, and people raise the purse all the time.

A tenth of a dollar is reserved and spent by each attempt that a worker ends; one that the leader ends costs nothing.
The purse begins with five tenths, and is raised by two persons at once, so most of the work waits for it most of the
time. The rest of the weather is that of the swarm: leaders die between an end and its record, records cannot be read
for a moment, and a local disk goes back with its power.

Law: what the witness reads in the tree is spent, and what stands in claimed/ is reserved. Both together never exceed
what was published as the limit, but for tasks that the network or a former leader made ready behind the leader's
back. In the end the leader's sum is that of all records, each once.
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

from spoold.client.spool.limits_and_budgets import raise_budget
from spoold.protocol.feed_checkpoint import parse_checkpoint
from spoold.protocol.names import EndedName, TaskName, key, parse_archived, parse_ended
from spoold.rules.gates.budget_usage import micros
from spoold.system.scratch import MemoryScratch
from tests.sim.conduct import Broken
from tests.sim.laws import Laws, token_at
from tests.sim.workload import SETTINGS as PLAIN
from tests.sim.workload import Client
from tests.sim.workload import check_ends as check_plain_ends

PURSE, TENTH, BEGINS = "purse", 100_000, 500_000
LIMIT = b"[types.narrow]\nmax_concurrent = 2\n"
SETTINGS = PLAIN.replace(LIMIT, LIMIT + b'budgets = ["purse"]\n[budgets.purse]\ncost_usd = 0.5\n')
RAISE_S, RAISED, AT_LAST = 4.0, 0.2, 1000.0
# Until a leader has read what ended last, and saved its sums (s).
SETTLES_S = 30.0


class Costly(MemoryScratch):
    """Each attempt says that it cost what it had reserved."""

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        if name == "result.json":
            return b'{"cost_usd": 0.1}'
        return super().read(key, name, offset, limit)


class Spender(Client):
    """Whose tasks all draw on the purse, by their type or by themselves, and who raises it."""

    def live(self) -> None:
        for person in ("ada", "bob"):
            other = type(self)(self._scheduler, self._server, self._weather, self._laws, person)
            self._scheduler.spawn(other.name, lambda other=other: other._raise(self))  # type: ignore[misc]
        super().live()

    def _raise(self, whose: Client) -> None:
        while not whose.done:
            self._scheduler.sleep(RAISE_S)
            self._insist(lambda spool: raise_budget(spool, PURSE, {"cost_usd": RAISED}))
        self._insist(lambda spool: raise_budget(spool, PURSE, {"cost_usd": AT_LAST}))

    def _task(self, name: str, earlier: list[str]) -> dict[str, Any]:
        task = super()._task(name, earlier) | {"budget": {"cost_usd": TENTH / 1e6}}
        by_type = task["type"] == "narrow" and not name.startswith("timed")  # of which the type is changed
        return task if by_type else {**task, "budgets": [PURSE]}


class BudgetLaws(Laws):
    """The laws of the swarm, and that of the purse. behind: claims of which the leader could not know."""

    behind = 0

    def _claimed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        super()._claimed(name, src, dst)
        if src.startswith("claimed/") or not draws(self.server.fs.read(dst)):
            return
        self.behind += key(name.id) in self.conduct.strangers
        spent = sum(min(costs) for costs in records(self).values())
        running = [k for k, path in self.tokens.items() if path.startswith("claimed/") and self._draws(path)]
        limit = limit_of(self)
        if spent + TENTH * len(running) > limit + TENTH * self.behind and not self.conduct.amazed:
            raise Broken(
                f"budgets: {spent} are spent, {sorted(running)} run on a tenth each, and {limit} is the limit"
            )

    def _draws(self, path: str) -> bool:
        return draws(self.server.fs.read(path))


def draws(data: bytes) -> bool:
    """Whether a task draws on the purse."""
    return "budget" in json.loads(data)


def limit_of(laws: Laws) -> int:
    """The limit by all that was published, in millionths."""
    fs = laws.server.fs
    said = [json.loads(fs.read(path)) for path in fs.files() if path.startswith("settings/")]
    added = [change["settings"]["budgets"][PURSE]["add"]["cost_usd"] for change in said]
    return BEGINS + sum(micros(amount) for amount in added)


def records(laws: Laws) -> dict[tuple[str, int], list[int]]:
    """What each ended attempt cost by each of its records, in millionths; more than one where two deciders wrote."""
    fs, found = laws.server.fs, dict[tuple[str, int], list[int]]()
    files = fs.files()
    for path in files:
        room, _, rest = path.partition("/")
        archived = parse_archived(rest.rpartition("/")[2]) if room == "archive" else None
        name = parse_ended(rest) if room == "results" else archived[0] if archived else None
        if name is None or (archived and archived[1] != "result"):
            continue
        at = laws.tokens.get(key(name.id))
        token = token_at(at) if at is not None else None
        if token is None or at is None or not draws(fs.read(at)):
            continue
        over = name.attempt <= token.attempt if isinstance(token, EndedName) else name.attempt < token.attempt
        if over and (not isinstance(token, EndedName) or name.attempt < token.attempt or name == token):
            with contextlib.suppress(ValueError):  # one that its writer did not live to write whole
                cost = json.loads(fs.read(path)).get("cost_usd") or 0
                found.setdefault((key(name.id), name.attempt), []).append(round(cost * 1e6))
    return found


def check_ends(laws: Laws, cancelled: set[str]) -> None:
    """As in the swarm; and the sum that the last leader has saved is that of all records, each once."""
    check_plain_ends(laws, cancelled)
    looked_at, equal = -math.inf, False

    def settled() -> bool:
        nonlocal looked_at, equal
        if laws.scheduler.now >= looked_at + 1.0:  # asked before every turn
            looked_at, equal = laws.scheduler.now, _told(laws)[0] <= _saved(laws) <= _told(laws)[1]
        return equal

    laws.scheduler.run(laws.scheduler.now + SETTLES_S, settled)
    if not equal:
        raise Broken(
            f"sums: the leader says that {_saved(laws)} are spent, and the records {_told(laws)} at least, most"
        )


def _told(laws: Laws) -> tuple[int, int]:
    """What all records come to, at least and at most: no one knows which of two counts. A task that nobody was told
    of may still run, since its submission was tried again.
    """
    costs = records(laws).values()
    return sum(map(min, costs)), sum(map(max, costs))


def _saved(laws: Laws) -> int:
    """What the newest checkpoint says that the purse has spent, in millionths."""
    fs = laws.server.fs
    names = [name for name in map(parse_checkpoint, fs.list("status")) if name is not None]
    for name in sorted(names, reverse=True):
        tallies = json.loads(fs.read(f"status/{name.encode()}"))["states"].get("budgets", {}).get("tallies", [])
        return sum(int(one["spent"].get("cost_usd", 0)) for one in tallies if one["budget"] == PURSE)
    return 0
