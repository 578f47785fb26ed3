"""What the result of a merge says.

Law: what landed is listed with the commit that the remote showed, and nothing else is said to have landed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spoold.agents.merge.candidate import Candidate, Refused
from spoold.protocol.amount import amount, clip, some

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
