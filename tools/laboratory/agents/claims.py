"""What `netlab test-agents` claims, checked against a copy of the server's disk: the spool, and the repository.

Law: as of the demonstration. What the spool says is held against the repository, and both against the model.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from spoold import Spool
from spoold.protocol.amount import amount, figure, some
from spoold.protocol.event import Event
from spoold.protocol.result import Result
from tools.demonstration.agents.mind import LARGE, WORD, feature
from tools.demonstration.agents.repository import Repository
from tools.demonstration.cluster import laptop_of
from tools.demonstration.ledger import Attempt, detail_of, read_attempts
from tools.demonstration.proof import UNDER_WAY, Claim, ended
from tools.laboratory.agents.fleet import AGAIN, APP, LINKED
from tools.laboratory.agents.provider import TOKENS, Provider

# Within this (s) a task that met a spent quota is ready as another type.
OFFERED_S = 30.0


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen. scratch: holds a copy of the share; killed: the laptops, with what they ran; away: for each
    time that the git server was away, the edits whose push was due; other: the command line that had to take the
    tasks of the closed account.
    """

    scratch: Path
    tasks: Sequence[Mapping[str, object]]
    killed: Sequence[tuple[str, list[str]]]
    away: Sequence[Sequence[str]]
    repositories: Mapping[str, Repository]
    model: Provider
    other: str

    @property
    def root(self) -> Path:
        """The copy of the spool."""
        return self.scratch / "share" / "spool"

    @property
    def spared(self) -> dict[str, str]:
        """The edits that no laptop ran when it lost its power, by task: the name that the model has for each."""
        hit = {task for _, running in self.killed for task in running}
        names = {str(task["id"]): feature(number) for number, task in enumerate(self.tasks, 1)}
        return {task: name for task, name in names.items() if task not in hit}


def prove(story: Story, spool: Spool) -> Iterator[Claim]:
    """All claims about a spool in which everything has ended and nobody works any more."""
    for repository in story.repositories.values():
        repository.take(story.scratch / "share" / repository.path.name)
    completed, failed = ended(story.root, "completed"), ended(story.root, "failed")
    times = Counter(name.rsplit(".", 2)[0] for name in [*completed, *failed])
    results = spool.wait(list(times), timeout=0)
    events = list(spool.iter_events())
    attempts = read_attempts(events, results.values())
    yield from _tasks(story, times, failed)
    yield from _clis(story, attempts)
    yield from _main(story, results)
    yield from _beside(story)
    yield from _killed(story, attempts)
    yield from _away(story, attempts)
    yield from _quota(story, results, events)
    yield from _paid(story, results)
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
        mine = [one for one in attempts if agent.get(one.task, one.type) == cli]
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
    """The main branches have every edit once, and were green at each of their commits."""
    place = {str(task["id"]): _name(task) for task in story.tasks}
    found, wrong, commits, red = 0, list[str](), 0, list[str]()
    for name in sorted(set(place.values())):
        repository = story.repositories[name]
        wanted = [feature(number) for number, task in enumerate(story.tasks, 1) if _name(task) == name]
        there, line = repository.features("main"), repository.first_parents()
        found += len({*there} & {*wanted})
        wrong += [one for one in wanted if len(repository.made_by(one)) != 1] + sorted({*there} - {*wanted})
        commits += len(line)
        red += [f"{name} {commit[:12]}" for commit in line if not repository.is_green(commit)]
    count = len(story.tasks)
    yield Claim(f"{found} of {amount(count, 'edit')} are in main, each by one commit {some(wrong)}", found == count)
    changes = sorted(story.repositories[APP].changes())
    told = [f"- {feature(number)} is there" for number in (1, count)]
    yield Claim(
        f"{len(changes)} of 2 lines in one place are there: {changes}",
        changes == told or (len(changes) == 1 and {*changes} < {*told} and not _both_spared(story)),
    )
    missing = sorted(
        task for task, name in place.items() if not story.repositories[name].has(_commit(results.get(task)))
    )
    yield Claim(
        f"the accepted commits of {count - len(missing)} of {amount(count, 'edit')} are in main {some(missing)}",
        not missing and not wrong,
    )
    yield Claim(f"the tests pass at {commits - len(red)} of the {commits} commits of main {some(red)}", not red)


def _both_spared(story: Story) -> bool:
    """Whether no power cut met the edits that conflict: one that begins anew may write over the other's line, which
    has landed by then."""
    return {str(story.tasks[0]["id"]), str(story.tasks[-1]["id"])} <= story.spared.keys()


def _beside(story: Story) -> Iterator[Claim]:
    """What is in other repositories: the word of a submodule, and the content of a large file at its server."""
    for number, task in enumerate(story.tasks, 1):
        repository, name = story.repositories[_name(task)], feature(number)
        if repository.name == LINKED:
            word = story.repositories["lib"].shown(Path(WORD).name)
            same = bool(word) and repository.shown(f"features/{name}.txt") == word
            yield Claim(f"{task['id']} has what its submodule says: {word.strip()}", same)
        elif repository.name == LARGE:
            pointer = repository.shown(f"{LARGE}/{name}.bin")
            content = (f"{name}\n".encode() * 100_000)[:300_000]
            digest = hashlib.sha256(content).hexdigest()
            objects = story.scratch / "share" / repository.path.name / "lfs" / "objects"
            kept = objects / digest[:2] / digest[2:4] / digest
            holds = f"sha256:{digest}" in pointer and kept.is_file() and kept.read_bytes() == content
            yield Claim(f"{task['id']} has a pointer of git-lfs in main, and its server has the content", holds)


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


def _away(story: Story, attempts: Sequence[Attempt]) -> Iterator[Claim]:
    """Pushes that were due while the git server was away were tried again, and no agent was started for them."""
    for number, due in enumerate(story.away, 1):
        names = {str(task["id"]): feature(count) for count, task in enumerate(story.tasks, 1)}
        waited = [
            task for task, name in names.items() if name in due and any(AGAIN in one for one in _logs(story, task))
        ]
        again = [task for task, name in story.spared.items() if name in due and story.model.finished[name] != 1]
        yield Claim(
            f"the git server was away, number {number}: of {amount(len(due), 'edit')} whose push was due "
            f"{len(waited)} tried it again, {len(again)} started an agent again {some(again)}",
            bool(waited) and not again,
        )
    later = [one for one in attempts if one.outcome == "TRY_LATER" and one.task.endswith("-merge")]
    if story.away:
        yield Claim(f"{amount(len(later), 'attempt')} of merges waited for it, at no charge", holds=True)


def _quota(story: Story, results: Mapping[str, Result], events: Sequence[Event]) -> Iterator[Claim]:
    """While the account was closed its tasks were offered as another type at once, and none waited for it to open."""
    model = story.model
    if not model.account:
        return
    mine = {str(task["id"]) for task in story.tasks if task["agent"] == model.account}
    offered, began, never = list[float](), list[float](), list[str]()
    for task in sorted(mine):
        own = sorted((event for event in events if event.task == task), key=lambda event: _seconds(event.at))
        refused = next((one for one in own if _is_refused(one)), None)
        if refused is None or (at := _seconds(refused.at)) >= model.closed_at + model.closed_s:
            continue
        later = [(one, _seconds(one.at) - at) for one in own if _seconds(one.at) > at]
        offers = [after_s for one, after_s in later if one.event == "READY" and "instead_of" in detail_of(one)]
        starts = [after_s for one, after_s in later if one.event == "STARTED"]
        if not offers or not starts:
            never.append(task)
            continue
        offered.append(offers[0])
        began.append(starts[0])
    taken = {task for task in mine if task in results and results[task].instead_of == model.account}
    by = {str(results[task].type) for task in taken}
    yield Claim(
        f"the account of {model.account} was closed for {model.closed_s:g} s: {amount(len(offered), 'refused edit')} "
        f"offered as another type within {max(offered, default=0):.1f} s, and begun, in a free slot, within "
        f"{max(began, default=0):.0f} s; {len(taken)} of {amount(len(mine), 'edit')} ended as "
        f"{some(sorted(by)) or 'no other'} {some(never)}",
        bool(offered)
        and not never
        and by == {story.other}
        and max(offered) < OFFERED_S
        and max(began) < model.closed_s,
    )


def _is_refused(event: Event) -> bool:
    return event.event == "RETURNED" and "quota of" in str(detail_of(event).get("message", ""))


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _paid(story: Story, results: Mapping[str, Result]) -> Iterator[Claim]:
    """What results say of tokens and cost is what the model counted, and no conversation was finished twice."""
    model, spared = story.model, story.spared
    twice = [task for task, name in spared.items() if model.finished[name] != 1]
    cut = [feature(number) for number, task in enumerate(story.tasks, 1) if task["id"] not in spared]
    cut_more = [name for name in cut if model.finished[name] > 1]
    yield Claim(
        f"{len(twice)} of {amount(len(spared), 'edit')} paid twice, and {len(cut_more)} of {len(cut)} that a power "
        f"cut met {some([*twice, *cut_more])}",
        not twice,
    )
    said = {task: _spent(results[task]) for task in results}
    rows = {
        task: (said[task], (model.answers[name] * TOKENS, model.cost[name]))
        for task, name in spared.items()
        if task in said
    }
    helpers = [_spent(results[task]) for task in results if "-resolve-" in task]
    rows["conflicts"] = (
        (sum(tokens for tokens, _ in helpers), sum(cost for _, cost in helpers)),
        (model.answers[""] * TOKENS, model.cost[""]),
    )
    for place, what in enumerate(("tokens", "US$")):
        wrong = [
            f"{task}: {one[place]:g} and {other[place]:g}"
            for task, (one, other) in rows.items()
            if abs(one[place] - other[place]) > 1e-6
        ]
        sums = [sum(row[side][place] for row in rows.values()) for side in (0, 1)]
        figures = [figure(round(one)) if what == "tokens" else f"{one:.4f}" for one in sums]
        yield Claim(
            f"{figures[0]} {what} reported of the {len(spared)} edits and the conflicts, {figures[1]} counted by the "
            f"model; {len(wrong)} differ {some(wrong)}",
            not wrong,
        )


def _spent(result: Result) -> tuple[int, float]:
    one = result.total or result
    return round(one.tokens_used or 0), one.cost_usd or 0.0


def _logs(story: Story, task: str) -> Iterator[str]:
    """What attempts of a task said."""
    for path in (story.root / "logs").rglob(f"{task}.*"):
        if path.is_file():
            yield path.read_text(errors="replace")


def _name(task: Mapping[str, object]) -> str:
    """Return which repository a task is in."""
    said = task.get("workspace")
    return Path(str(said["repo"])).stem if isinstance(said, Mapping) else APP


def _commit(result: Result | None) -> str:
    output = result.output if result is not None else None
    said = output.get("workspace") if isinstance(output, Mapping) else None
    return str(said.get("commit", "")) if isinstance(said, Mapping) else ""
