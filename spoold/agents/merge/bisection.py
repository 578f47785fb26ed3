"""The order of a merge: everything together first; when the tests fail, each half by itself; conflicts last.

It stands apart from `__main__`, its one user, which reads files and variables; this is the decision.

Law: only a commit that passed is pushed, and each race that is lost begins again with a new dry run and new tests. A
branch that fails its own tests blames nobody's work. Work is refused for good only for what it holds itself. In the
outcome, what landed is listed with the commit that the remote showed, and nothing else is said to have landed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from spoold.agents.merge.branch import Branch
from spoold.agents.merge.candidates import Candidate, Conflict, Joined, Refused, join
from spoold.agents.merge.guards import Guards
from spoold.agents.merge.testing import Bench
from spoold.agents.workspace.git import RemoteRefused, commit_of, is_ancestor
from spoold.protocol.amount import amount, clip, some
from spoold.protocol.errors import legible

# So many pushes of others may come between; a branch that is busier than that is tried again later.
RACES = 20
Say = Callable[[str], None]


class Helper(Protocol):
    """Who resolves conflicts: tasks for agents, then people."""

    def resolve(self, conflict: Conflict) -> Candidate | Refused:
        """Return the work with its conflict resolved, or why it is left out."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What this merger's owner asks for besides tests that pass. guards: None for none; retest: how often what failed
    is tested again."""

    guards: Guards | None = None
    retest: int = 0


NO_RULES = Rules()


class Bisection:
    """One merge of several candidates into a branch."""

    def __init__(
        self, branch: Branch, bench: Bench, helper: Helper, merge_id: str, say: Say, rules: Rules = NO_RULES
    ) -> None:
        self._branch, self._bench, self._helper, self._rules = branch, bench, helper, rules
        self._merge_id, self._say = merge_id, say
        self._races, self._closed = 0, ""
        self._green: set[str] = set()
        self.outcome = Outcome(branch.mirror.repo, branch.name)

    def run(self, candidates: Sequence[Candidate], refused: Sequence[Refused] = ()) -> Outcome:
        """Land what can be landed. Errors: WorkspaceFailed, GitFailed, OSError; what landed before then is landed."""
        self.outcome.refused += refused
        batches = deque([tuple(candidates)] if candidates else [])
        while batches and not self.outcome.waits:
            batch = batches.popleft()
            if self._closed:
                self.outcome.refused += [Refused(one.task, "remote", self._closed) for one in batch]
            else:
                batches.extendleft(reversed(self._step(batch)))
        self.outcome.after = self._branch.fetch()
        return self.outcome

    def _step(self, batch: tuple[Candidate, ...]) -> list[tuple[Candidate, ...]]:
        """Land a batch, or find out why it does not; returns the batches that are to follow it."""
        tip = self._branch.fetch()
        self.outcome.before = self.outcome.before or tip
        free, apart = self._guarded(tip, batch)
        return [*(self._try(tip, free) if free else ()), *apart]

    def _guarded(
        self, tip: str, batch: tuple[Candidate, ...]
    ) -> tuple[tuple[Candidate, ...], list[tuple[Candidate]]]:
        """Return what may land, and what comes after it, each by itself: people are asked, and nothing waits for
        their answer that needs none."""
        guards, free, apart = self._rules.guards, list[Candidate](), list[tuple[Candidate]]()
        for one in batch:
            refused = self._without_content(tip, one)
            if guards is not None and refused is None:
                refused = guards.refused(self._bench.git, tip, one)
            paths = () if guards is None or refused is not None else guards.protected(self._bench.git, tip, one)
            if paths and len(batch) > 1:
                apart.append((one,))
                continue
            if guards is not None and paths:
                self._say(f"{one.task} changes what is protected: people are asked about {', '.join(paths)}")
                refused = guards.asked(one, paths)
            if refused is None:
                free.append(one)
            else:
                self.outcome.refused.append(refused)
        return tuple(free), apart

    def _without_content(self, tip: str, one: Candidate) -> Refused | None:
        if not (paths := self._bench.lacking(tip, one.commit)):
            return None
        which = amount(len(paths), "file")
        said = f"the server of git-lfs does not have the content of {which}: {some(list(map(legible, paths)))}"
        return Refused(one.task, "lfs", said)

    def _try(self, tip: str, batch: tuple[Candidate, ...]) -> list[tuple[Candidate, ...]]:
        joined = join(self._bench.git, tip, batch, self._merge_id)
        for one in joined.conflicts:
            self._say(f"{one.candidate.task} conflicts in {', '.join(one.paths)}")
        if not joined.taken:
            self._settle(joined)
            return [(found,) for one in joined.conflicts if (found := self._resolved(one)) is not None]
        alone = (*(one.candidate for one in joined.conflicts), *joined.later)
        rest: list[tuple[Candidate, ...]] = [(one,) for one in alone]
        names = ", ".join(one.task for one in joined.taken)
        begins, untested = ("testing", "") if self._bench.tests else ("joining", "; no test is configured")
        self._say(f"{begins} {names} on {tip[:12]}, as {joined.commit[:12]}{untested}")
        reason, why = self._judged(joined, names)
        if self.outcome.waits:
            return []
        if why:
            return self._failed(joined, reason, why, rest)
        try:
            if not self._branch.land(self._bench.git, tip, joined.commit):
                return self._lost(batch)
        except RemoteRefused as refused:
            return self._turned_away(joined, str(refused), rest)
        self._green.add(joined.commit)
        self.outcome.tested.append(joined.commit)
        self.outcome.landed += [(one, joined.commit) for one in joined.taken]
        self._say(f"landed {names} as {joined.commit}")
        self._settle(joined)
        return rest

    def _judged(self, joined: Joined, names: str) -> tuple[str, str]:
        """Return why a commit is not to land, as reason and in words; empty for a good one."""
        if why := self._verdict(joined.commit, names):
            return "tests", why
        if not self._bench.lists:
            return "", ""
        after, before = self._bench.count(joined.commit), self._bench.count(joined.tip)
        if isinstance(before, str):
            self.outcome.waits = f"the tests of {self._branch.name} cannot be counted at {joined.tip[:12]}: {before}"
        elif isinstance(after, int) and after < before:
            return "fewer_tests", f"it leaves {amount(after, 'test')} of {before}"
        return "", ""

    def _verdict(self, commit: str, names: str) -> str:
        """Return why a commit fails its tests, also when it is tested again; '' for a good one."""
        failed: list[str] = []
        while why := self._bench.verdict(commit):
            failed.append(why)
            if len(failed) > self._rules.retest:
                return why
            self._say(f"{names} failed, and is tested once more: {why}")
        self.outcome.flaky += [f"{names} failed, and passed then: {one}" for one in failed]
        return ""

    def _turned_away(
        self, joined: Joined, why: str, rest: list[tuple[Candidate, ...]]
    ) -> list[tuple[Candidate, ...]]:
        """A rule of the remote: it holds for the branch, so nothing else is tried."""
        self._closed = why
        self.outcome.refused += [Refused(one.task, "remote", why) for one in joined.taken]
        self._settle(joined)
        return rest

    def _settle(self, joined: Joined) -> None:
        self.outcome.already += joined.already
        self.outcome.refused += joined.refused

    def _lost(self, batch: tuple[Candidate, ...]) -> list[tuple[Candidate, ...]]:
        self._races += 1
        if self._races > RACES:
            lost = amount(RACES, "other push", "other pushes")
            self.outcome.waits = f"{lost} to {self._branch.name} came first; it is tried again later"
            return []
        self._say(f"another push to {self._branch.name} came first: once more")
        return [batch]

    def _failed(
        self, joined: Joined, reason: str, why: str, rest: list[tuple[Candidate, ...]]
    ) -> list[tuple[Candidate, ...]]:
        """Return what follows on failed tests: halves, until one piece of work is found to be the cause."""
        if reason == "tests" and joined.tip not in self._green:
            if red := self._verdict(joined.tip, self._branch.name):
                self.outcome.waits = f"{self._branch.name} fails its own tests at {joined.tip[:12]}: {red}"
                return []
            self._green.add(joined.tip)
        self._settle(joined)
        taken = joined.taken
        if len(taken) == 1:
            self.outcome.refused.append(Refused(taken[0].task, reason, why))
            self._say(f"{taken[0].task} fails: {reason}")
            return rest
        self._say(f"{reason} of {len(taken)} together: each half by itself")
        middle = len(taken) // 2
        return [taken[:middle], taken[middle:], *rest]

    def _resolved(self, conflict: Conflict) -> Candidate | None:
        """Return work whose conflict was resolved; None where it is left out."""
        while True:
            found = self._helper.resolve(conflict)
            if isinstance(found, Refused):
                self.outcome.refused.append(found)
                return None
            self._branch.fetch((f"{found.ref}*",))
            known = commit_of(self._bench.git, [found.commit]) is not None
            by_agent = found.rounds > conflict.candidate.rounds
            if known and (not by_agent or is_ancestor(self._bench.git, conflict.theirs, found.commit)):
                return found
            self._say(f"what was made of the conflict of {found.task} does not hold its work: it does not count")
            conflict = replace(conflict, candidate=replace(conflict.candidate, rounds=found.rounds))


# What the result of a merge says.


# How much (characters) of the reason for a refusal is in the one line, and of how many reasons.
_WHY_MAX, _WHYS = 400, 3


@dataclass(slots=True)
class Outcome:
    """What became of each task. before, after: the tip of the branch; tested: the commits whose tests passed and
    which landed, in order; flaky: what failed first and passed then, as sentences; waits: why it is to be tried again
    later, '' where nothing is left to try."""

    repo: str
    into: str
    before: str = ""
    after: str = ""
    landed: list[tuple[Candidate, str]] = field(default_factory=list)
    already: list[Candidate] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    tested: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    waits: str = ""

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for is in the branch."""
        return not self.refused and not self.waits

    def as_output(self) -> dict[str, Any]:
        """Return the result of the task."""
        rows = [*self.landed, *((one, None) for one in self.already)]
        return {
            "repo": self.repo,
            "into": self.into,
            "before": self.before,
            "after": self.after,
            "landed": [
                {"task": one.task, "commit": one.commit, "merge": merge, **_lacks(one)} for one, merge in rows
            ],
            "refused": [{"task": one.task, "reason": one.reason, "detail": one.detail} for one in self.refused],
            "tested": self.tested,
            **({"flaky": self.flaky} if self.flaky else {}),
            **({"waits": self.waits} if self.waits else {}),
            **({} if self.whole else {"reasons": [self.summary()]}),
        }

    def told(self) -> list[str]:
        """Return it as sentences."""
        said = [f"{one.task} landed in {self.into} with {merge}" for one, merge in self.landed]
        said += [f"{one.task} is in {self.into} already" for one in self.already]
        for one in (*(one for one, _ in self.landed), *self.already):
            said += [f"{one.task}: not in what landed: {sentence}" for sentence in (*one.left_out, *one.beside)]
        said += [f"flaky: {sentence}" for sentence in self.flaky]
        said += [f"{one.task} has not landed ({one.reason}): {one.detail}" for one in self.refused]
        return [*said, self.waits] if self.waits else said

    def summary(self) -> str:
        """Return what has not landed, in one line."""
        if self.waits:
            return self.waits
        whose = dict[str, list[str]]()
        for one in self.refused:
            whose.setdefault(clip(" ".join(f"{one.reason}: {one.detail}".split()), _WHY_MAX), []).append(one.task)
        each = "; ".join(f"{some(names)} ({why})" for why, names in list(whose.items())[:_WHYS])
        return f"{amount(len(self.refused), 'task')} not landed in {self.into}: {each}{'; …' * (len(whose) > _WHYS)}"


def _lacks(one: Candidate) -> dict[str, list[str]]:
    """Return what was made and is not in the work, as fields of a result."""
    said = {"left_out": list(one.left_out), "beside": list(one.beside)}
    return {name: sentences for name, sentences in said.items() if sentences}
