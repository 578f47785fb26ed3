"""What one seed of a storm submits: settings, and an endless series of tasks that use all of them.

Law: pure. The same seed gives the same tasks in the same order; only when they are submitted is up to the machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SETTINGS = """
[heartbeat]
interval_s = 0.75
misses = 4
[retry]
backoff_s = 0.1
crash_limit = 1000
[drop]
grace_s = 1.5
[retention]
keep = 60
[limits.one]
max = 1
[limits.few]
max = 3
[limits.paced]
rate = {count = 4, per_s = 10}
[limits.both]
max = 2
rate = {count = 6, per_s = 6}
[budgets.purse]
cost_usd = 0.1
over = "hold"
[budgets.dry]
cost_usd = 0.05
over = "fail"
[classes.urgent]
slots = 1
borrow = true
"""
LIMITS = {"one": 1, "few": 3, "both": 2}
RATES = {"paced": (4, 10.0), "both": (6, 6.0)}
# USD. The first holds tasks back, and is raised in the end.
BUDGETS = {"purse": 0.1, "dry": 0.05}
PATHS = ("src/a", "src/b", "src/", "docs/", "repo:main")
PRIORITIES = ("critical", "high", "normal", "normal", "normal", "low", "background")


@dataclass(frozen=True, slots=True)
class Submitted:
    """A task as it was submitted. codes: the exit codes of its attempts; cost: what each costs (USD)."""

    id: str
    fields: dict[str, Any]
    seconds: float
    codes: tuple[int, ...]
    cost: float


@dataclass(slots=True)
class Weather:
    """The tasks of one seed."""

    seed: int
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def tasks(self) -> Iterator[Submitted]:
        """Yield tasks without end."""
        ids: list[str] = []
        while True:
            task = self._task(f"t{len(ids)}", ids)
            ids.append(task.id)
            yield task

    def _task(self, task_id: str, before: list[str]) -> Submitted:
        chance = self.chance
        fields: dict[str, Any] = {"priority": chance.choice(PRIORITIES), "max_retries": 2, "timeout": 60}
        cost = 0.0
        if chance.random() < 0.35:
            limit = chance.choice(("one", "few", "few", "paced", "both"))
            fields["uses"] = {limit: 1 if limit != "few" else chance.randint(1, 2)}
        if chance.random() < 0.25:
            fields["locks"] = {chance.choice(("read", "write")): [chance.choice(PATHS)]}
        if before and chance.random() < 0.3:
            kind = chance.choice(("after", "after", "after_any", "after_failed"))
            fields[kind] = chance.sample(before[-30:], min(len(before), chance.randint(1, 3)))
        if chance.random() < 0.3:
            fields["batch"] = f"b{len(before) // 25}"
        if "batch" not in fields and len(before) > 50 and chance.random() < 0.05:
            fields["after_batch"] = f"b{len(before) // 25 - 1}"
        if chance.random() < 0.15:
            cost = 0.01
            fields |= {"budgets": [chance.choice(("purse", "dry"))], "budget": {"cost_usd": cost}}
        if chance.random() < 0.1:
            fields["class"] = "urgent"
        if chance.random() < 0.03:
            fields["approval"] = {"ask": "Go on?", "expires_s": 600}
        codes = chance.choice(((0,),) * 6 + ((1, 0), (75, 0), (1, 1, 0), (1,), (64,), (3, 75, 0)))
        return Submitted(task_id, fields, round(chance.expovariate(3.0), 2), codes, cost)
