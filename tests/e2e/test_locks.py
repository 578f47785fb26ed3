"""Tasks with locks, on real processes whose leaders die: nothing that conflicts overlaps, by the tasks' own notes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from spoold.rules.gates.lock_holders import Demand
from tests.e2e.pool import SETTINGS, Daemon, Pool, wait_for

TASKS, KILLS, SEED = 50, 3, 14
PATTERNS = ("src/**", "src/api/**", "src/*/x", "src/web/y", "docs/", "docs/a", "repo:main", "**/x")


def task(pool: Pool, name: str, write: list[str], read: list[str], work_s: float = 0.1) -> dict[str, Any]:
    """One that notes when it begins and when it ends."""
    runs = pool.path("runs")
    note = f"echo {{}} {name} $(date +%s%N) >> {runs}"
    command = f"{note.format('begin')}; sleep {work_s}; {note.format('end')}"
    return {"id": name, "command": command, "locks": {"write": write, "read": read}}


def notes(pool: Pool) -> dict[str, tuple[int, int]]:
    """When each task began and ended (ns)."""
    times: dict[str, list[int]] = {}
    for line in pool.path("runs").read_text().splitlines():
        times.setdefault(line.split()[1], []).append(int(line.split()[2]))
    assert all(len(both) == 2 for both in times.values()), "no worker died, so nothing ran twice"
    return {name: (min(both), max(both)) for name, both in times.items()}


def check(spans: dict[str, tuple[int, int]], demands: dict[str, Demand]) -> None:
    """No two tasks that conflict ran at the same time."""
    for (one, a), (other, b) in itertools.combinations(spans.items(), 2):
        if demands[one].clash(demands[other]):
            assert a[1] <= b[0] or b[1] <= a[0], f"{one} and {other} overlap: {demands[one]}, {demands[other]}"


def lead_another(pool: Pool, masters: dict[str, Daemon], number: int) -> None:
    """Kill the leader, and start another master in its place."""
    leader = wait_for(pool.leader, "somebody leads")
    name = leader.removeprefix("m-").rpartition("-")[0]
    masters.pop(name).kill()
    masters[f"m{number}"] = pool.master(f"m{number}")
    wait_for(lambda: pool.leader() not in (None, leader), "another leads")


def test_nothing_that_conflicts_runs_together_though_leaders_die(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS + "\n[durability]\nfsync = false\n")
    masters = {name: pool.master(name) for name in ("one", "two")}
    for name in ("a", "b"):
        pool.worker(name, slots=4)
    pool.ready("a", "b")
    chance, demands = random.Random(SEED), {}
    for number in range(TASKS):
        write = chance.sample(PATTERNS, chance.choice((0, 1, 1, 2)))
        read = chance.sample(PATTERNS, chance.choice((0, 1, 2)))
        one = task(pool, f"t{number}", write, read, work_s=round(chance.uniform(0.02, 0.3), 2))
        demands[f"t{number}"] = Demand(
            tuple(p.replace("docs/", "docs/**") if p == "docs/" else p for p in write),
            tuple(p.replace("docs/", "docs/**") if p == "docs/" else p for p in read),
        )
        pool.drop(f"t{number}.json", one)
    for number in range(KILLS):
        wait_for(lambda n=number: len(pool.listing("completed")) > 6 * (n + 1) or None, "work goes on", 90)  # type: ignore[misc]
        lead_another(pool, masters, number)
    wait_for(lambda: len(pool.listing("completed")) + len(pool.listing("failed")) >= TASKS, "all ended", 120)
    assert pool.listing("failed") == []
    spans = notes(pool)
    assert len(spans) == TASKS
    check(spans, demands)


def test_a_writer_among_endless_readers_starts(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS + "\n[durability]\nfsync = false\n")
    pool.master("one")
    pool.worker("a", slots=4)
    pool.ready("a")
    demands, number = {"writer": Demand(("src/**",))}, itertools.count()

    def read_on() -> bool:
        """One reader more, unless enough wait; whether the writer has ended."""
        ended = pool.listing("completed")
        if len(demands) - len(ended) < 12:
            name = f"r{next(number)}"
            demands[name] = Demand(read=("src/a",))
            pool.drop(f"{name}.json", task(pool, name, [], ["src/a"], work_s=0.5))
            if name == "r6":
                pool.drop("writer.json", task(pool, "writer", ["src/"], []))
        return any(file.startswith("writer.") for file in ended)

    wait_for(read_on, "the writer has had its turn", 90)
    wait_for(lambda: len(pool.listing("completed")) == len(demands), "all ended", 90)
    spans = notes(pool)
    check(spans, demands)
    assert any(span[0] > spans["writer"][1] for span in spans.values()), "readers came after it, too"
