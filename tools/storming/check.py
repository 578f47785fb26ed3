"""Judges a storm from what is on the share and from what the commands wrote, and from nothing that spoold says of it.

Law: independent of the product: names and files are read as spool_layout.md describes them. An attempt certainly ran
from its first line in the ledger to its last; it may have run a little longer. So what overlaps here did so in truth.

Touches: files.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.storming.weather import BUDGETS, LIMITS, RATES, Submitted

# Clocks of one machine agree; a command that is killed may have written its last line this long (s) before.
EPSILON_S = 0.002


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt, as its command saw it. Times in s since 1970."""

    task: str
    attempt: int
    began: float
    last: float
    ended: bool


def judge(root: Path, ledger: Path, submitted: Mapping[str, Submitted]) -> list[str]:
    """Return every breach of a law, as a sentence."""
    runs = runs_of(ledger)
    ends = ends_of(root)
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    parts = (
        _tokens(root, submitted),
        _attempts(by_task),
        _ended(submitted, ends, by_task),
        _limits(runs, submitted),
        _rates(runs, submitted),
        _locks(runs, submitted),
        _order(by_task, submitted, ends),
        budgets(root, submitted, ["dry"]),
    )
    return [breach for part in parts for breach in part]


def runs_of(ledger: Path) -> list[Run]:
    """Return every run as its command wrote it, first begun first."""
    return sorted(_runs(ledger), key=lambda run: run.began)


def _runs(ledger: Path) -> Iterator[Run]:
    for path in ledger.iterdir():
        task, _, attempt = path.name.rpartition(".")
        lines = path.read_text(encoding="ascii").split("\n")
        # The last line of one that was killed may be cut.
        moments = [float(line) for line in lines[:-1] if line not in ("", "end")]
        if moments:
            yield Run(task, int(attempt), moments[0], moments[-1], "end" in lines)


def ends_of(root: Path) -> dict[str, dict[str, Any]]:
    """Return the record that counts for each ended task, with the state in which that ended."""
    found = {}
    for path, record in _ended_files(root):
        found[path.name.split(".")[0]] = {"state": _state(path), **_read(record)}
    return found


def _state(path: Path) -> str:
    """The state in which a task ended: its folder, or, in the archive, its suffix."""
    if path.parent.name in ("completed", "failed"):
        return path.parent.name
    return "completed" if ".completed" in path.name else "failed"


def _ended_files(root: Path) -> Iterator[tuple[Path, Path]]:
    """Each file of an ended task, and that of its record."""
    for state in ("completed", "failed"):
        for path in (root / state).iterdir():
            yield path, root / "results" / path.name
    for path in (root / "archive").rglob("*.json"):
        if path.name.endswith((".completed.json", ".failed.json")):
            stem = path.name.rsplit(".", 2)[0]
            yield path, path.with_name(f"{stem}.result.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def _tokens(root: Path, submitted: Mapping[str, Submitted]) -> Iterator[str]:
    """One token for each task, and it has ended."""
    seen = Counter(path.name.split(".")[0] for path, _ in _ended_files(root))
    for task in submitted:
        if seen[task] != 1:
            yield f"{task} has {seen[task]} ended files"
    for state in ("waiting", "ready", "claimed", "returned"):
        for path in (root / state).rglob("*.json"):
            yield f"{path.relative_to(root)} has not ended"


def _attempts(by_task: Mapping[str, list[Run]]) -> Iterator[str]:
    """No two attempts of a task run at once."""
    for task, mine in by_task.items():
        for one, other in pairwise(sorted(mine, key=lambda run: run.began)):
            if other.began < one.last - EPSILON_S:
                both_s = one.last - other.began
                yield f"{task}: attempts {one.attempt} and {other.attempt} ran at once, for {both_s:.2f} s"


def _ended(
    submitted: Mapping[str, Submitted], ends: Mapping[str, dict[str, Any]], by_task: Mapping[str, list[Run]]
) -> Iterator[str]:
    """A task that completed has a run that ended with 0; one whose run did so has completed."""
    for task, mine in submitted.items():
        end, runs = ends.get(task), by_task.get(task, [])
        if end is None:
            continue
        good = [run for run in runs if run.ended and mine.codes[min(run.attempt, len(mine.codes)) - 1] == 0]
        if end["state"] == "completed" and end.get("attempt") not in [run.attempt for run in good]:
            yield f"{task} completed as attempt {end.get('attempt')}, which did not end well: {runs}"
        if end["state"] == "failed" and runs and "code" not in (end.get("error") or {}):
            yield f"{task} failed without a code"


def _limits(runs: list[Run], submitted: Mapping[str, Submitted]) -> Iterator[str]:
    for limit, most in LIMITS.items():
        moves = []
        for run in runs:
            units = submitted[run.task].fields.get("uses", {}).get(limit, 0)
            if units:
                moves += [(run.began, units, run), (run.last - EPSILON_S, -units, run)]
        used = 0
        for at, units, run in sorted(moves, key=lambda move: (move[0], move[1])):
            used += units
            if used > most:
                yield f"limit {limit}: {used} of {most} units in use at {at:.3f}, when {run.task} began"


def _rates(runs: list[Run], submitted: Mapping[str, Submitted]) -> Iterator[str]:
    for limit, (count, per_s) in RATES.items():
        starts = [run for run in runs if limit in submitted[run.task].fields.get("uses", {})]
        for first, last in zip(starts, starts[count:], strict=False):
            # A command begins some time after its claim, which is what counts: the first may have been late.
            if last.began - first.began < per_s - 1.0:
                within_s = last.began - first.began
                yield f"rate {limit}: {count + 1} starts within {within_s:.2f} s, from {first.task} on"


def _locks(runs: list[Run], submitted: Mapping[str, Submitted]) -> Iterator[str]:
    holders = [(run, kind, path) for run in runs for kind, path in _locks_of(submitted[run.task])]
    for number, (one, kind, path) in enumerate(holders):
        for other, other_kind, other_path in holders[number + 1 :]:
            if other.began >= one.last - EPSILON_S or other.task == one.task:
                continue
            if "write" in (kind, other_kind) and overlap(path, other_path):
                yield f"{one.task} and {other.task} ran at once, with locks {path} and {other_path}"


def _locks_of(task: Submitted) -> Iterator[tuple[str, str]]:
    for kind, paths in task.fields.get("locks", {}).items():
        yield from ((kind, path) for path in paths)


def overlap(one: str, other: str) -> bool:
    """Whether one of two patterns is the other, or lies in its folder."""
    return one == other or any(b.endswith("/") and a.startswith(b) for a, b in ((one, other), (other, one)))


def _order(
    by_task: Mapping[str, list[Run]], submitted: Mapping[str, Submitted], ends: Mapping[str, dict[str, Any]]
) -> Iterator[str]:
    """A task begins after those that it waits for have ended, and not at all if one of them failed."""
    for task, runs in by_task.items():
        fields, began = submitted[task].fields, min(run.began for run in runs)
        for kind in ("after", "after_any", "after_failed"):
            for parent in fields.get(kind, ()):
                last = max((run.last for run in by_task.get(parent, [])), default=0.0)
                if kind != "after_failed" and last > began + EPSILON_S:
                    yield f"{task} began {last - began:.2f} s before {parent} ended, which it waits for ({kind})"
        for parent in fields.get("after", ()):
            if ends.get(parent, {}).get("state") != "completed":
                yield f"{task} ran although {parent} did not complete"


def budgets(root: Path, submitted: Mapping[str, Submitted], names: Iterable[str]) -> Iterator[str]:
    """What the records of all attempts cost together is within the limits of these budgets."""
    spent: dict[str, float] = defaultdict(float)
    for path in (*(root / "results").iterdir(), *(root / "archive").rglob("*.result.json")):
        record = _read(path)
        task = submitted.get(record.get("task_id", ""))
        for budget in task.fields.get("budgets", ()) if task is not None else ():
            spent[budget] += record.get("cost_usd") or 0.0
    for budget in names:
        if spent[budget] > BUDGETS[budget] + 1e-6:
            yield f"budget {budget}: {spent[budget]:.2f} of {BUDGETS[budget]:.2f} USD were spent"
