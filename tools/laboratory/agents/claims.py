"""What `netlab test-agents` claims, checked against a copy of the server's disk: the spool, and the repository.

Law: as of the demonstration. What the spool says is held against the repository, and both against the model.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spoold import Spool
from spoold.protocol.amount import amount, some
from spoold.protocol.result import Result
from tools.demonstration.agents.mind import feature
from tools.demonstration.agents.model import Model
from tools.demonstration.agents.repository import Repository
from tools.demonstration.cluster import laptop_of
from tools.demonstration.ledger import Attempt, read_attempts
from tools.demonstration.proof import UNDER_WAY, Claim, ended


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen. scratch: holds a copy of the share; killed: the laptops, with what they ran."""

    scratch: Path
    tasks: Sequence[Mapping[str, object]]
    killed: Sequence[tuple[str, list[str]]]
    repository: Repository
    model: Model

    @property
    def root(self) -> Path:
        """The copy of the spool."""
        return self.scratch / "share" / "spool"


def prove(story: Story, spool: Spool) -> Iterator[Claim]:
    """All claims about a spool in which everything has ended and nobody works any more."""
    story.repository.take(story.scratch / "share" / "app.git")
    completed, failed = ended(story.root, "completed"), ended(story.root, "failed")
    times = Counter(name.rsplit(".", 2)[0] for name in [*completed, *failed])
    results = spool.wait(list(times), timeout=0)
    attempts = read_attempts(list(spool.iter_events()), results.values())
    yield from _tasks(story, times, failed)
    yield from _clis(story, attempts)
    yield from _main(story, results)
    yield from _killed(story, attempts)
    fsck = subprocess.run(
        [sys.executable, "-P", "-m", "spoold", "--spool", str(story.root), "fsck"],
        capture_output=True,
        text=True,
        check=False,
    )
    yield Claim(f"fsck ends with status {fsck.returncode}: {fsck.stdout.strip()[-300:]}", fsck.returncode == 0)


def _tasks(story: Story, times: Counter[str], failed: Sequence[str]) -> Iterator[Claim]:
    edits = [str(task["id"]) for task in story.tasks]
    wanted = {*edits, *(f"{edit}-merge" for edit in edits)}
    lost, doubled = sorted(wanted - times.keys()), sorted(task for task, count in times.items() if count > 1)
    left = [path.name for state in UNDER_WAY for path in (story.root / state).rglob("*.json")]
    helpers = len(times.keys() - wanted)
    yield Claim(
        f"{len(edits)} edits and {len(edits)} merges, {amount(helpers, 'task')} more for conflicts: "
        f"{len(lost)} lost, {len(doubled)} doubled, {len(failed)} failed, {len(left)} left over "
        f"{some([*lost, *doubled, *failed, *left])}",
        not lost and not doubled and not failed and not left,
    )


def _clis(story: Story, attempts: Sequence[Attempt]) -> Iterator[Claim]:
    agent = {str(task["id"]): str(task["agent"]) for task in story.tasks}
    for cli in sorted(set(agent.values())):
        mine = [one for one in attempts if one.type == cli or agent.get(one.task) == cli]
        outcomes = Counter(one.outcome for one in mine)
        took = sorted(one.duration_s for one in mine if one.duration_s is not None and one.outcome == "COMPLETED")
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        median = took[len(took) // 2] if took else 0.0
        yield Claim(
            f"{cli}: {amount(len(mine), 'attempt')} of {amount(len({one.task for one in mine}), 'task')}: {told}; "
            f"median {median:.0f} s",
            bool(mine),
        )
    merges = Counter(one.outcome for one in attempts if one.task.endswith("-merge"))
    yield Claim(
        f"merges: {', '.join(f'{count} {outcome}' for outcome, count in sorted(merges.items()))}", bool(merges)
    )


def _main(story: Story, results: Mapping[str, Result]) -> Iterator[Claim]:
    """Main has every edit once, and was green at each of its commits."""
    repository, count = story.repository, len(story.tasks)
    wanted = [feature(number) for number in range(1, count + 1)]
    line = repository.first_parents()
    found, times = repository.features("main"), [len(repository.made_by(name)) for name in wanted]
    yield Claim(
        f"main has {len(found)} of {amount(count, 'feature')}: {times.count(0)} lost, "
        f"{sum(time > 1 for time in times)} made by more than one commit",
        found == wanted and times == [1] * count,
    )
    changes = sorted(repository.changes())
    yield Claim(
        f"{len(changes)} of 2 lines in one place are there: {changes}",
        changes == [f"- {feature(number)} is there" for number in (1, count)],
    )
    accepted = {task: _commit(results.get(str(task))) for task in (task["id"] for task in story.tasks)}
    missing = sorted(str(task) for task, commit in accepted.items() if not commit or not repository.has(commit))
    yield Claim(
        f"the accepted commits of {count - len(missing)} of {amount(count, 'edit')} are in main {some(missing)}",
        not missing,
    )
    red = [commit[:12] for commit in line if not repository.is_green(commit)]
    yield Claim(
        f"the tests pass at {len(line) - len(red)} of the {amount(len(line), 'commit')} of main {some(red)}",
        not red and len(line) > 1,
    )


def _killed(story: Story, attempts: Sequence[Attempt]) -> Iterator[Claim]:
    for laptop, running in story.killed:
        died = {one.task for one in attempts if one.outcome == "WORKER_DIED" and laptop_of(one.worker) == laptop}
        last = {one.task: one for one in attempts}
        done = sorted(task for task in running if task in last and last[task].outcome == "COMPLETED")
        yield Claim(
            f"a power cut of {laptop} in {amount(len(running), 'task')}: {amount(len(died), 'attempt')} died, "
            f"{len(done)} of the tasks completed all the same",
            len(done) == len(running),
        )
    others = {laptop_of(one.worker) for one in attempts if one.outcome == "WORKER_DIED"}
    spared = sorted(others - {laptop for laptop, _ in story.killed})
    yield Claim(f"no laptop was taken for dead that was not {some(spared)}", not spared)


def _commit(result: Result | None) -> str:
    output = result.output if result is not None else None
    said = output.get("workspace") if isinstance(output, Mapping) else None
    return str(said.get("commit", "")) if isinstance(said, Mapping) else ""
