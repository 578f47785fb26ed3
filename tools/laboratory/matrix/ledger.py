"""What was submitted, what lies on the server's disk, what ran on the laptops: and whether that is one story. Pure.

Law: the names of files are read by a grammar of this room's own; one that shared spoold's would share its errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.laboratory.matrix.exclusion import CLOCK_S, Exclusion
from tools.laboratory.matrix.trace import Execution, overlap_s

_MOVING = re.compile(r"(waiting|ready|claimed)/[^/]+/\d+\.[^.]+\.([^.]+)\.a(\d+)f\d+c\d+[^/]*\.json")
_RETURNED = re.compile(r"(returned)/\d+\.[^.]+\.([^.]+)\.a(\d+)f\d+c\d+[^/]*\.json")
_ENDED = re.compile(r"(completed|failed)/([^.]+)\.(\d+)\.([^.]+)\.json")
_ARCHIVED = re.compile(r"(archive)/../([^.]+)\.(\d+)\.([^.]+)\.(?:completed|failed)\.json")
_TAKEN = frozenset({"worker_died", "handed_back"})


@dataclass(frozen=True, slots=True)
class Token:
    """A task file: in which state, of which attempt, and who decided it if it ended."""

    state: str
    id: str
    attempt: int
    decider: str = ""


def tokens(files: list[str]) -> list[Token]:
    """The tokens among a spool's files."""
    found = []
    for path in files:
        for pattern in (_MOVING, _RETURNED, _ENDED, _ARCHIVED):
            if match := pattern.fullmatch(path):
                state, task, attempt, *decider = match.groups()
                found.append(Token(state, task, int(attempt), *decider))
    return found


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that the witnesses of one cell saw.

    parents: what each task waits for. results: name of the file → id, attempt, status. commits: the COMPLETED lines
    of all journals. blind: laptops that lost their memory to a power cut. undone: the server lost its own.
    stems: how many tasks come of drops that name no id. refused: drops that may stay in rejected/, with a reason.
    exclusion: what must not run at once.
    """

    parents: Mapping[str, tuple[str, ...]]
    files: list[str]
    results: Mapping[str, tuple[str, int, str]]
    commits: list[tuple[str, int, str]]
    executions: list[Execution]
    blind: frozenset[str] = frozenset()
    undone: bool = False
    stems: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    exclusion: Exclusion = field(default_factory=Exclusion)


@dataclass(slots=True)
class Verdict:
    """The counts of one cell.

    rerun: starts beyond a task's first. fenced: attempts that were taken from their worker, or that it handed back.
    late: commands that came to their end for nothing. overlap_s: the longest time that two of one task ran at once.
    """

    tasks: int = 0
    lost: int = 0
    doubled: int = 0
    rerun: int = 0
    fenced: int = 0
    late: int = 0
    overlap_s: float = 0.0
    problems: list[str] = field(default_factory=list)


def judge(seen: Ledger, overlap_allowed_s: float = 0.0, *, unbroken: bool = False) -> Verdict:
    """The verdict; any problem fails the cell. unbroken: each task has to end as its first attempt."""
    verdict = Verdict(tasks=len(seen.parents) + sum(seen.stems.values()))
    by_id: dict[str, list[Token]] = {}
    for token in tokens(seen.files):
        by_id.setdefault(token.id, []).append(token)
    committed = {task: found[0] for task, found in by_id.items() if len(found) == 1 and found[0].state == "completed"}
    _count_tokens(seen, by_id, verdict)
    _count_commits(seen, verdict)
    _check_results(seen, committed, verdict)
    _check_executions(seen, committed, verdict)
    if unbroken:
        again = sorted(task for task, token in committed.items() if token.attempt > 1)
        verdict.problems += [f"{task} ended as attempt {committed[task].attempt}" for task in again]
    verdict.problems += seen.exclusion.problems(seen.executions)
    overlaps = overlap_s(seen.executions)
    verdict.overlap_s = max(overlaps.values(), default=0.0)
    verdict.problems += [
        f"{task} ran twice at once for {seconds:.1f} s"
        for task, seconds in sorted(overlaps.items())
        if seconds > overlap_allowed_s + CLOCK_S
    ]
    return verdict


def _count_tokens(seen: Ledger, by_id: Mapping[str, list[Token]], verdict: Verdict) -> None:
    for task in sorted(seen.parents):
        found = by_id.get(task, [])
        where = ", ".join(f"{token.state} (attempt {token.attempt})" for token in found)
        if not found:
            verdict.lost += 1
            verdict.problems.append(f"{task} is lost: no file of it is anywhere")
        elif len(found) > 1:
            verdict.doubled += 1
            verdict.problems.append(f"{task} is doubled: {where}")
        elif found[0].state != "completed":
            verdict.problems.append(f"{task} did not complete: {where}")
    made = _made_ids(seen, by_id, verdict)
    for task in sorted(set(by_id) - set(seen.parents) - made):
        verdict.problems.append(f"{task} was never submitted")
    refused = {f"rejected/{drop}" for drop in seen.refused} & set(seen.files)
    expected = refused | {f"{path}.reason.json" for path in refused}
    verdict.problems += [f"{path} stands there without a reason" for path in sorted(expected - set(seen.files))]
    left = [path for path in seen.files if path.startswith(("pending/", "rejected/")) and path not in expected]
    verdict.problems += [f"left over: {path}" for path in left]


def _made_ids(seen: Ledger, by_id: Mapping[str, list[Token]], verdict: Verdict) -> set[str]:
    """The ids that were made for drops without one; each drop has to be a task that completed."""
    made = set()
    for stem, drops in seen.stems.items():
        found = {task for task in by_id if re.fullmatch(rf"{re.escape(stem)}-[0-9a-z]{{8}}", task)}
        made |= found
        verdict.lost += max(0, drops - len(found))
        verdict.doubled += max(0, len(found) - drops)
        if len(found) != drops:
            verdict.problems.append(f"{drops} drops called {stem} became {len(found)} tasks")
        for task in sorted(found):
            states = [token.state for token in by_id[task]]
            if states != ["completed"]:
                verdict.problems.append(f"{task} did not complete once: {', '.join(states)}")
    return made


def _count_commits(seen: Ledger, verdict: Verdict) -> None:
    # A commit that a power cut of the server took back is made again; then two lines tell of one token.
    if seen.undone:
        return
    commits: dict[str, set[tuple[int, str]]] = {}
    for task, attempt, writer in seen.commits:
        commits.setdefault(task, set()).add((attempt, writer))
    for task, times in sorted(commits.items()):
        if len(times) > 1:
            verdict.doubled += 1
            verdict.problems.append(f"{task} was committed {len(times)} times: {sorted(times)}")


def _check_results(seen: Ledger, committed: Mapping[str, Token], verdict: Verdict) -> None:
    for task, token in sorted(committed.items()):
        name = f"{task}.{token.attempt}.{token.decider}.json"
        if seen.results.get(name) != (task, token.attempt, "success"):
            verdict.problems.append(f"{task} has no sound result: results/{name} says {seen.results.get(name)}")
        successes = sum(told[0] == task and told[2] == "success" for told in seen.results.values())
        # An attempt that was fenced between its result and its commit leaves a record too, under another name.
        if not successes:
            verdict.problems.append(f"{task} completed without any success")
    verdict.fenced = len({told[:2] for told in seen.results.values() if told[2] in _TAKEN})


def _check_executions(seen: Ledger, committed: Mapping[str, Token], verdict: Verdict) -> None:
    starts = Counter(execution.id for execution in seen.executions)
    verdict.rerun = sum(count - 1 for count in starts.values())
    kept = {(token.id, token.attempt, token.decider) for token in committed.values()}
    verdict.late = sum(execution.ended and execution.name not in kept for execution in seen.executions)
    if not seen.undone:
        for name, count in Counter(execution.name for execution in seen.executions).items():
            if count > 1:
                verdict.problems.append(f"attempt {name[1]} of {name[0]} was started {count} times by {name[2]}")
    ran = {execution.name: execution for execution in seen.executions if execution.ended}
    for task, token in sorted(committed.items()):
        name = (task, token.attempt, token.decider)
        if name not in ran and not any(token.decider.startswith(f"{laptop}-") for laptop in seen.blind):
            verdict.problems.append(f"{task} counts as done, and no laptop saw attempt {token.attempt} of it end")
        for parent in seen.parents.get(task, ()):
            before = committed.get(parent)
            end = ran.get((parent, before.attempt, before.decider)) if before else None
            if name in ran and end is not None and ran[name].began < end.last - CLOCK_S:
                verdict.problems.append(f"{task} started before {parent} had ended")
