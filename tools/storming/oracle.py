"""Judges what spoold said in a storm: each answer of `explain`, `status` and `asks` against what in truth was so.

Law: independent of the product, as the judge of the storm is: the truth is what the commands wrote, the records of
attempts and what was submitted. What a node says of others must have been so at some moment not longer than LAG_S
before: heartbeats and snapshots are some seconds old, and a leader that was killed says nothing meanwhile.

Touches: nothing; it is given what was read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tools.storming.check import EPSILON_S, Run, overlap
from tools.storming.weather import LIMITS, Submitted

# How old (s) a fact may be: a node counts as dead after 3 s, and the next leader reads all before it says a word.
LAG_S = 8.0
# And how old where a task is, which everybody sees by himself: a command begins a moment after its claim.
FRESH_S = 2.0
# What goes on "within moments" has done so after so long (s), unless the leader who says so is killed within so few:
# the next one may find something more urgent that takes what it needs.
MOMENTS_S, LED_S = 15.0, 2.0
MOMENTS = "nothing stands in its way"
OVER = ("completed", "failed", "skipped")
NOT_BEGUN = ("pending", "waiting", "ready", "returned")
TASK = r"(t\d+)"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer to `spool explain`. asked, told: when it was asked for, and there (s); reasons: gate, text."""

    task: str
    asked: float
    told: float
    state: str
    attempt: int
    verdict: str
    reasons: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture of the whole: the tasks by state, or the tasks that have a question (of `spool asks`)."""

    asked: float
    told: float
    counts: Mapping[str, int] = field(default_factory=dict)
    asks: tuple[str, ...] = ()


class Truth:
    """What was so."""

    def __init__(
        self,
        submitted: Mapping[str, Submitted],
        moments: Mapping[str, float],
        runs: Sequence[Run],
        ends: Mapping[str, dict[str, Any]],
        answered: Mapping[str, float],
        kills: Sequence[float] = (),
    ) -> None:
        """moments: when each was submitted; answered: when a question of it was; kills: when a leader was killed."""
        self.submitted, self.moments, self.ends, self.answered = submitted, moments, ends, answered
        self.kills = kills
        self.runs: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            self.runs[run.task].append(run)

    def ended(self, task: str) -> float | None:
        """When it ended for good; None where no record says so."""
        return _moment(self.ends.get(task, {}).get("completed_at", ""))

    def ran(self, task: str, since: float, until: float) -> list[Run]:
        """Its runs that touch this time."""
        return [run for run in self.runs.get(task, []) if run.began <= until and run.last >= since - EPSILON_S]

    def began(self, task: str) -> float | None:
        """When it began for the first time; None: it never did."""
        return min((run.began for run in self.runs.get(task, [])), default=None)


def judge_said(said: Said, truth: Truth) -> list[str]:
    """Return what is wrong with one answer, as sentences."""
    wrong = [*_state(said, truth), *_promise(said, truth)]
    for gate, text in said.reasons:
        for pattern, law in LAWS.get(gate, ()):
            if found := re.search(pattern, text):
                wrong += [f"{text!r}: {why}" for why in law(said, truth, *found.groups())]
    return [f"explain {said.task} ({said.state}, attempt {said.attempt}) at {said.asked:.2f}: {why}" for why in wrong]


def judge_shown(shown: Shown, truth: Truth) -> list[str]:
    """Return what is wrong with one picture."""
    wrong = []
    before = sum(at < shown.asked - LAG_S for at in truth.moments.values())
    done = sum((truth.ended(task) or 0.0) > 0 and (truth.ended(task) or 0.0) < shown.told for task in truth.submitted)
    if shown.counts:
        total, over = sum(shown.counts.values()), sum(shown.counts.get(state, 0) for state in OVER)
        if not total <= len(truth.moments):
            wrong.append(f"{total} tasks in all, of which only {len(truth.moments)} were ever submitted")
        if over > done:
            wrong.append(f"{over} have ended, of which {done} had at {shown.told:.2f}")
        if total < before:
            wrong.append(f"{total} tasks in all, though {before} were submitted {LAG_S:g} s before")
    for task in shown.asks:
        at = truth.answered.get(task)
        if "approval" not in truth.submitted[task].fields:
            wrong.append(f"asks names {task}, which asks nothing")
        elif at is not None and at < shown.asked - LAG_S:
            wrong.append(f"asks names {task}, which was answered {shown.asked - at:.1f} s before")
        elif (began := truth.began(task)) is not None and began < shown.asked - LAG_S:
            wrong.append(f"asks names {task}, which ran {shown.asked - began:.1f} s before")
    return [f"at {shown.asked:.2f}: {why}" for why in wrong]


def _state(said: Said, truth: Truth) -> Iterator[str]:
    ended = truth.ended(said.task)
    if said.state in NOT_BEGUN:
        for run in truth.ran(said.task, said.asked - FRESH_S, said.told):
            # The whole of it: a run that ended meanwhile may be followed by the next attempt, which waits.
            if run.attempt >= said.attempt and run.began < said.asked - FRESH_S and run.last > said.told:
                yield f"it ran from {run.began:.2f} to {run.last:.2f}, as attempt {run.attempt}"
        if ended is not None and ended < said.asked - LAG_S:
            yield f"it had ended at {ended:.2f}"
    elif said.state == "claimed":
        if ended is not None and ended < said.asked - LAG_S:
            yield f"it had ended at {ended:.2f}"
        for run in truth.runs.get(said.task, []):
            if run.attempt > said.attempt and run.began < said.asked - FRESH_S:
                yield f"attempt {run.attempt} had begun at {run.began:.2f}"
    elif said.state in OVER:
        state = truth.ends.get(said.task, {}).get("state", "")
        if state and (state == "completed") != (said.state == "completed"):
            yield f"it ended as {state}"
        if ended is not None and ended > said.told + 1.0:
            yield f"it ended only at {ended:.2f}"


def _promise(said: Said, truth: Truth) -> Iterator[str]:
    if not said.verdict.startswith(MOMENTS) or said.state not in ("waiting", "ready"):
        return
    if any(said.asked - LED_S < kill < said.told + LED_S for kill in truth.kills):
        return
    later = [run for run in truth.runs.get(said.task, []) if run.last >= said.asked]
    ended = truth.ended(said.task)
    if later and min(run.began for run in later) > said.told + MOMENTS_S:
        yield f"{said.verdict!r}: it began {min(run.began for run in later) - said.told:.1f} s later"
    elif not later and (ended is None or ended > said.told + MOMENTS_S):
        yield f"{said.verdict!r}: it never began"


def _names(kinds: tuple[str, ...]) -> Callable[[Said, Truth, str], Iterator[str]]:
    def law(said: Said, truth: Truth, named: str) -> Iterator[str]:
        """Each task that it waits for is one of its own, and has not ended."""
        mine = {task for kind in kinds for task in truth.submitted[said.task].fields.get(kind, ())}
        for task in re.findall(TASK, named):
            ended = truth.ended(task)
            if task not in mine:
                yield f"it does not wait for {task}"
            elif ended is not None and ended < said.asked - LAG_S:
                yield f"{task} had ended at {ended:.2f}"

    return law


def _limit(said: Said, truth: Truth, limit: str, used: str, most: str) -> Iterator[str]:
    if limit not in truth.submitted[said.task].fields.get("uses", {}):
        yield f"it does not use {limit}"
    if limit in LIMITS and int(most) != LIMITS[limit]:
        yield f"the limit is {LIMITS[limit]}"
    if int(used) > int(most):
        yield "more than there is"


def _idle(said: Said, truth: Truth, named: str) -> Iterator[str]:
    for task in re.findall(TASK, named):
        for run in truth.ran(task, said.asked, said.told):
            if run.began < said.asked - LAG_S and run.last > said.told + EPSILON_S:
                yield f"{task} ran since {run.began:.2f}"


def _before(said: Said, truth: Truth, task: str, units: str, limit: str) -> Iterator[str]:
    """A task that comes first uses the limit, and has not begun."""
    uses = truth.submitted[task].fields.get("uses", {})
    if uses.get(limit) != int(units):
        yield f"{task} uses {uses}"
    yield from _still(said, truth, task)


def _rated(said: Said, truth: Truth, task: str, limit: str) -> Iterator[str]:
    yield from _one("uses")(said, truth, limit)
    yield from _still(said, truth, task)


def _still(said: Said, truth: Truth, task: str) -> Iterator[str]:
    """This task has not ended for good."""
    ended = truth.ended(task)
    if task == said.task:
        yield "it waits for itself"
    elif ended is not None and ended < said.asked - LAG_S:
        yield f"{task} had ended at {ended:.2f}"


def _lock(said: Said, truth: Truth, kind: str, mine: str, task: str) -> Iterator[str]:
    """Who keeps it back has a lock that excludes its own."""
    mine = mine.removesuffix("**")
    if mine not in truth.submitted[said.task].fields.get("locks", {}).get(kind, ()):
        yield f"it locks {truth.submitted[said.task].fields.get('locks')}"
    theirs = truth.submitted[task].fields.get("locks", {})
    against = [*theirs.get("write", ()), *(theirs.get("read", ()) if kind == "write" else ())]
    if not any(overlap(mine, path) for path in against):
        yield f"{task} locks {theirs}"
    yield from _still(said, truth, task)


def _one(name: str, usual: str = "") -> Callable[[Said, Truth, str], Iterator[str]]:
    def law(said: Said, truth: Truth, told: str) -> Iterator[str]:
        """What it is said to use, or to wait for, is what it was submitted with."""
        mine = truth.submitted[said.task].fields.get(name, usual)
        if told != mine and told not in mine:
            yield f"its {name} is {mine!r}"

    return law


def _approval(said: Said, truth: Truth) -> Iterator[str]:
    if "approval" not in truth.submitted[said.task].fields:
        yield "it asks nothing"
    elif truth.answered.get(said.task, said.asked) < said.asked - LAG_S:
        yield f"it was answered at {truth.answered[said.task]:.2f}"


# By the gate that a reason names: what is looked for in its text, and the law for what is found there.
LAWS: Mapping[str, Sequence[tuple[str, Callable[..., Iterator[str]]]]] = {
    "dependencies": [(r"it waits for (.*) to complete", _names(("after",)))],
    "after_any": [(r"it waits for (.*) to end", _names(("after_any",)))],
    "after_failed": [(r"it waits for (.*) to (?:end|fail)", _names(("after_failed",)))],
    "limit": [
        (r"limit (\w+) runs at its limit: (\d+) of \[limits\.\w+\] max = (\d+)", _limit),
        (r"none of it runs yet: (.*) stands? ready", _idle),
        (rf"task {TASK}, which is before it, waits for (\d+) of limit (\w+)", _before),
    ],
    "rate": [
        (r"^limit (\w+) is at its rate", _one("uses")),
        (rf"task {TASK}, which is before it, .* limit (\w+)", _rated),
    ],
    "budget": [(r"of budget (\w+)", _one("budgets"))],
    "class": [(r"^class (\w+) uses", _one("class", "default"))],
    "after_batch": [(r"batch (\w+)", _one("after_batch"))],
    "locks": [(rf"it waits for the lock (read|write) (\S+), .* by task {TASK}", _lock)],
    "approval": [(r"it waits for an answer", _approval)],
}


def kinds(said: Sequence[Said]) -> Counter[str]:
    """How often each state and each gate was seen: what was judged."""
    counted = Counter(each.state for each in said)
    counted.update(f"gate {gate}" for each in said for gate, _ in each.reasons)
    return counted


def _moment(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None
