"""Tasks that must not run at once: those whose locks meet, and more users of a limit than it has units. Pure.

Law: what a pattern covers stands in a table here. spoold is not asked, since its errors would be the judge's too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from tools.laboratory.matrix.trace import Execution
from tools.laboratory.matrix.workload import Workload

# Each pattern, and what it covers of eight things that stand for all.
COVERS = {
    "src/**": {"src/api/x", "src/api/z", "src/web/x", "src/web/y"},
    "src/api/**": {"src/api/x", "src/api/z"},
    "src/*/x": {"src/api/x", "src/web/x"},
    "src/web/y": {"src/web/y"},
    "docs/": {"docs/a", "docs/b"},
    "docs/a": {"docs/a"},
    "repo:main": {"repo:main"},
    "repo:next": {"repo:next"},
}
SEED, LOCKED, LIMITED = 14, 50, 20
LIMIT, MOST = "account", 2
SETTINGS = f"""
[limits.{LIMIT}]
max = {MOST}
"""
# What the reading of two guests' clocks may be wrong by.
CLOCK_S = 0.3


@dataclass(frozen=True, slots=True)
class Exclusion:
    """locks: of tasks, the patterns that they write and those that they read; users: tasks that use the limit."""

    locks: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    users: frozenset[str] = frozenset()

    def problems(self, executions: Iterable[Execution]) -> list[str]:
        """What ran at once and must not have."""
        runs = [one for one in executions if one.id in self.locks or one.id in self.users]
        return self._meetings(runs) + self._crowds(runs)

    def _meetings(self, runs: list[Execution]) -> list[str]:
        found = []
        for one, other in combinations([run for run in runs if run.id in self.locks], 2):
            shared_s = min(one.last, other.last) - max(one.began, other.began)
            if one.id != other.id and shared_s > CLOCK_S and self._meet(one.id, other.id):
                names = sorted((one.id, other.id))
                found.append(f"{names[0]} and {names[1]} ran at once for {shared_s:.1f} s, though their locks meet")
        return sorted(found)

    def _meet(self, one: str, other: str) -> bool:
        (writes, reads), (others_writes, others_reads) = self.locks[one], self.locks[other]
        return bool(
            _covered(writes) & _covered(others_writes + others_reads)
            or _covered(others_writes) & _covered(writes + reads)
        )

    def _crowds(self, runs: list[Execution]) -> list[str]:
        users = [run for run in runs if run.id in self.users]
        found = set()
        for run in users:
            moment = run.began + CLOCK_S / 2
            beside = sorted({one.id for one in users if one.began <= moment <= one.last - CLOCK_S / 2})
            if len(beside) > MOST:
                found.add(f"{', '.join(beside)} ran at once, and {LIMIT} has {MOST} units")
        return sorted(found)


def _covered(patterns: Iterable[str]) -> set[str]:
    return {thing for pattern in patterns for thing in COVERS[pattern]}


def exclusive() -> Workload:
    """Tasks with locks, and tasks that use the limit; none is of no length, so each may meet another."""
    chance, workload = random.Random(SEED), Workload()
    for number in range(LOCKED):
        writes = chance.sample([*COVERS], chance.choice((0, 1, 1)))
        reads = chance.sample([*COVERS], chance.choice((0, 1, 2)))
        workload.add(f"locked-{number:02d}", 1, locks={"write": writes, "read": reads})
    for number in range(LIMITED):
        workload.add(f"limited-{number:02d}", 1 + number % 3, uses=[LIMIT])
    return workload


def of(workload: Workload) -> Exclusion:
    """What must not run at once of a cell's tasks."""
    more = workload.more
    locks = {task: (told["locks"]["write"], told["locks"]["read"]) for task, told in more.items() if "locks" in told}
    return Exclusion(locks, frozenset(task for task, told in more.items() if "uses" in told))
