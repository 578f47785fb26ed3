"""The proof: what the demonstration claims, checked against the tree of the spool, the events and `spool fsck`.

Law: the tree is read here with nothing but its normative names (STATE/…/ID.ATTEMPT.WHO.json), so that a mistake in
the library cannot hide itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.demonstration.cluster import laptop_of
from tools.demonstration.dag import CAUTIONS, REPORT, TWINS
from tools.demonstration.ledger import Attempt

UNDER_WAY = ("pending", "admitting", "waiting", "ready", "claimed", "returned")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and whether it is true."""

    sentence: str
    holds: bool


def ended(root: Path, state: str) -> list[str]:
    """The names of the tasks that ended in this state, without `.json`."""
    return [path.name.removesuffix(".json") for path in (root / state).glob("*.json")]


def prove(root: Path, submitted: list[str], attempts: list[Attempt], killed: str, files: int) -> Iterator[Claim]:
    """All claims about a spool in which everything has ended and nobody works any more.

    submitted: the ids of all tasks; killed: the laptop that was killed; files: how many were to be measured.
    """
    completed, failed = ended(root, "completed"), ended(root, "failed")
    times = Counter(name.rsplit(".", 2)[0] for name in [*completed, *failed])
    lost = sorted(set(submitted) - times.keys())
    doubled = sorted(task for task, count in times.items() if count > 1)
    left = [path for state in UNDER_WAY for path in (root / state).rglob("*.json*")]
    rejected = list((root / "rejected").iterdir())
    resultless = [name for name in [*completed, *failed] if not (root / "results" / f"{name}.json").exists()]

    yield Claim(f"{len(submitted)} tasks submitted, {len(completed)} completed", len(submitted) == len(completed))
    yield Claim(f"{len(lost)} lost{_named(lost)}", not lost)
    yield Claim(f"{len(doubled)} doubled{_named(doubled)}", not doubled)
    yield Claim(f"{len(failed)} failed, {len(rejected)} rejected", not failed and not rejected)
    yield Claim(f"{len(left)} left over on the way", not left)
    yield Claim(f"{len(resultless)} completed without a result{_named(resultless)}", not resultless)
    yield _retried(attempts)
    yield _taken_over(attempts, killed)
    yield _joined(root, completed, len(submitted) - 1, files)


def _retried(attempts: list[Attempt]) -> Claim:
    outcomes = [attempt.outcome for attempt in attempts if attempt.task == CAUTIONS]
    holds = "EXIT_NONZERO" in outcomes and outcomes[-1] == "COMPLETED"
    return Claim(f"{CAUTIONS} failed at first and completed as attempt {len(outcomes)}", holds)


def _taken_over(attempts: list[Attempt], killed: str) -> Claim:
    seen = [attempt for attempt in attempts if attempt.task == TWINS]
    ways = [(laptop_of(attempt.worker), attempt.outcome) for attempt in seen]
    by, outcome = ways[-1] if ways else ("nobody", "")
    holds = ways[:1] == [(killed, "WORKER_DIED")] and by != killed and outcome == "COMPLETED"
    return Claim(f"{TWINS} died with {killed} and completed as attempt {len(seen)} on {by}", holds)


def _joined(root: Path, completed: list[str], others: int, files: int) -> Claim:
    """The report has seen the result of every other task."""
    names = [name for name in completed if name.rsplit(".", 2)[0] == REPORT]
    output = json.loads((root / "results" / f"{names[0]}.json").read_text())["output"] if names else {}
    seen = (output.get("results", 0), output.get("measured", 0))
    return Claim(f"the report joined {seen[0]} results, {seen[1]} files measured", seen == (others, files))


def _named(names: list[str]) -> str:
    return f": {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else ""
