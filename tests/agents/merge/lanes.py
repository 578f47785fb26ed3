"""A merge lane on real repositories, with a helper that a test scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spoold.agents.configuration.merge_settings import MergeConfig
from spoold.agents.merge import testing
from spoold.agents.merge.bisection import Bisection, Outcome, Rules
from spoold.agents.merge.branch import Branch
from spoold.agents.merge.candidates import Candidate, Conflict, Refused
from spoold.agents.merge.conflicts import Nobody
from spoold.agents.merge.guards import Ask, Guards
from spoold.agents.merge.testing import Bench, Suite
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.workspace_layout import Places
from spoold.rules.redaction.masking import Scanner
from tests.agents.workspace.repos import Remote, pushed

Run = Callable[[str, str, float | None], tuple[int, str]]


class Scripted:
    """A helper that answers conflicts as it was told to."""

    def __init__(self, *answers: Callable[[Conflict], Candidate | Refused]) -> None:
        self.answers = list(answers)
        self.seen: list[Conflict] = []

    def resolve(self, conflict: Conflict) -> Candidate | Refused:
        self.seen.append(conflict)
        return self.answers.pop(0)(conflict) if self.answers else Nobody().resolve(conflict)


def work(remote: Remote, top: Path, task: str, files: dict[str, str | None], attempt: int = 1) -> Candidate:
    """The pushed work of a task, from the present tip of main."""
    ref = pushed(remote, top / "agents", task, files, attempt, resume="fresh")
    return Candidate(task, remote.commit(ref) if ref else remote.first, ref)


def land(
    remote: Remote,
    top: Path,
    *candidates: Candidate,
    tests: tuple[str, ...] = (),
    helper: Scripted | None = None,
    run: Run = testing.run,
    setup: tuple[str, ...] = (),
    listing: str = "",
    retest: int = 0,
    ask: Ask | None = None,
    **config: Any,
) -> Outcome:
    """Merge into main, as the handler does."""
    where = Places(str(top / "merger"), {})
    branch = Branch(Mirror(where, str(remote.path)), "main")
    branch.fetch(("refs/spool/*",))
    bench = Bench(where, branch.mirror, Suite(tests, setup, listing=listing), run)
    guards = None
    if config:
        said = MergeConfig.model_validate({"repos": str(remote.path), **config})
        guards = Guards(said, ask or Nobody().allows, Scanner({}))
    try:
        lane = Bisection(branch, bench, helper or Scripted(), "m1", lambda text: None, Rules(guards, retest))
        return lane.run(candidates)
    finally:
        bench.close()
