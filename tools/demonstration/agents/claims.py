"""What tools/demo agents claims, checked against the tree of the spool, its events, the repository and the model.

Law: every figure is counted here, and from another side than that which did the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spoold.protocol.amount import amount, figure, some
from spoold.protocol.result import Result
from tools.demonstration.agents.mind import feature
from tools.demonstration.agents.model import Model
from tools.demonstration.agents.repository import Repository
from tools.demonstration.cluster import laptop_of
from tools.demonstration.ledger import Attempt
from tools.demonstration.proof import UNDER_WAY, Claim, ended


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen. plan: the id of the planner's task, with which all other ids begin; submitted: the ids of
    the plan; killed: the laptop.
    """

    root: Path
    plan: str
    count: int
    submitted: Sequence[str]
    attempts: Sequence[Attempt]
    results: Mapping[str, Result]
    killed: str
    model: Model
    repository: Repository


def prove(story: Story) -> Iterator[Claim]:
    """All claims about a spool in which everything has ended and nobody works any more."""
    yield from _tasks(story)
    yield from _main(story)
    yield _killed(story)
    yield _quota(story)
    yield _conflict(story)
    used = sum(round((one.total or one).tokens_used or 0) for one in story.results.values())
    counted = story.model.tokens
    yield Claim(f"{figure(used)} tokens reported, of {figure(counted)} that the model counted", 0 < used <= counted)


def _tasks(story: Story) -> Iterator[Claim]:
    completed, failed = ended(story.root, "completed"), ended(story.root, "failed")
    times = Counter(name.rsplit(".", 2)[0] for name in [*completed, *failed])
    wanted = {story.plan, *story.submitted}
    lost, doubled = sorted(wanted - times.keys()), sorted(task for task, count in times.items() if count > 1)
    left = [path for state in UNDER_WAY for path in (story.root / state).rglob("*.json*")]
    helpers = len(times.keys() - wanted)
    edits = sum(story.results[_edit(story, number)].status == "success" for number in range(1, story.count + 1))
    yield Claim(
        f"1 plan with {amount(len(story.submitted), 'task')}, {amount(helpers, 'task')} more for conflicts: "
        f"{len(completed)} completed, {len(failed)} failed, {len(left)} left over",
        len(completed) == len(wanted) + helpers and not failed and not left,
    )
    yield Claim(
        f"{edits} of {amount(story.count, 'edit')} accepted by their tests, {len(lost)} lost, {len(doubled)} doubled",
        edits == story.count and not lost and not doubled,
    )


def _main(story: Story) -> Iterator[Claim]:
    """Main has every feature once, and was green at each of its commits."""
    repository, wanted = story.repository, [feature(number) for number in range(1, story.count + 1)]
    line = repository.first_parents()
    found, times = repository.features("main"), [len(repository.made_by(name)) for name in wanted]
    red = [commit[:12] for commit in line if not repository.is_green(commit)]
    once = sum(time == 1 for time in times)
    yield Claim(
        f"main has {len(found)} of {amount(len(wanted), 'feature')}, {once} of them made by one commit",
        found == wanted and times == [1] * len(wanted),
    )
    yield Claim(
        f"the tests pass at {len(line) - len(red)} of the {amount(len(line), 'commit')} of main"
        f"{f', not at {some(red)}' if red else ''}",
        not red and len(line) > 1,
    )


def _killed(story: Story) -> Claim:
    slow = f"{story.plan}-{story.model.slow}"
    ways = [(laptop_of(one.worker), one.outcome) for one in story.attempts if one.task == slow]
    died = [task.task for task in story.attempts if task.outcome == "WORKER_DIED"]
    by, outcome = ways[-1] if ways else ("nobody", "")
    others = {laptop_of(one.worker) for one in story.attempts if one.outcome == "WORKER_DIED"} - {story.killed}
    holds = ways[:1] == [(story.killed, "WORKER_DIED")] and by != story.killed and outcome == "COMPLETED"
    return Claim(
        f"{amount(len(died), 'attempt')} died with {story.killed}; {slow} completed as attempt {len(ways)} on {by}",
        holds and not others,
    )


def _quota(story: Story) -> Claim:
    """The refused edit had no retry to spend, and did not start again before the model had said that it may."""
    task, model = f"{story.plan}-{story.model.spent}", story.model
    tried = [one for one in story.attempts if one.task == task]
    outcomes = [one.outcome for one in tried]
    again = tried[1].began if len(tried) > 1 else None
    late_s = None if again is None else again - model.refused_at
    began = "never" if late_s is None else f"{late_s:.1f} s later"
    return Claim(
        f"{amount(model.refusals, 'refusal')} for want of quota: {task}, which has no retries, began again {began} "
        f"(the quota was closed for {model.closed_s} s)",
        # The model says for how many seconds more, in whole ones.
        outcomes == ["TRY_LATER", "COMPLETED"] and late_s is not None and late_s > model.closed_s - 1,
    )


def _conflict(story: Story) -> Claim:
    """An agent resolved the conflict, and what both sides said is there."""
    resolved = sorted(task for task in {one.task for one in story.attempts} if "-resolve-" in task)
    lines = sorted(story.repository.changes())
    wanted = sorted(f"- {feature(number)} is there" for number in (1, story.count))
    return Claim(
        f"{amount(len(resolved), 'conflict')} resolved by an agent: {len(lines)} of 2 lines in one place are there",
        len(resolved) == 1 and lines == wanted,
    )


def _edit(story: Story, number: int) -> str:
    return f"{story.plan}-{feature(number)}"
