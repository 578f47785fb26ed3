"""The ready tasks that make way: each holds what a more urgent waiting task lacks, and no worker has taken it yet.

What a task in ready/ holds is of use to nobody before a worker takes it: units of a limit, locks, a budget, the trial
of a quota or of a breaker, a slot of a class. Meanwhile more urgent tasks go past it, for as long as they come.

Law: a task makes way only for a more urgent one, which then goes at once, and none makes way that need not. So no
task waits without end behind less urgent ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spoold.protocol.names import TaskName
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.verdicts import Pass, Verdict, Wait


@dataclass(frozen=True, slots=True)
class Standing:
    """A task in ready/, or one that runs. conditions: what it says of budgets and locks. waits: for other tasks, its
    slot lent; idle: it has done so for long, or its machine sleeps.
    """

    task: TaskName
    lane: str
    conditions: Conditions = NO_CONDITIONS
    waits: bool = False
    idle: bool = False


@dataclass(slots=True)
class Way:
    """Who makes way for whom in one step. ready: asked only if a waiting task finds too little of something left.

    running: the claimed tasks, asked only if a waiting task has a part of what it needs.
    made: those that make way, by the file of the task that goes. kept: by resource, for which waiting tasks units are
    kept back, by file, with their number, the most urgent first.
    """

    ready: Callable[[], Iterable[Standing]] = tuple
    running: Callable[[], Iterable[Standing]] = tuple
    made: dict[str, list[Standing]] = field(default_factory=dict)
    kept: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    _least: list[Standing] | None = None
    _freed: list[Standing] = field(default_factory=list)

    def clear(
        self,
        rank: int,
        verdict: Verdict,
        ask: Callable[[], Verdict],
        free: Callable[[Standing], None],
        holds: Callable[[Wait, Standing], bool],
    ) -> Verdict:
        """Free what less urgent tasks hold until the gates pass, the least urgent first; return the last verdict.

        rank: of the task that wants to go; ask: for the verdict anew; holds: whether a task has what is waited for.
        """
        count = 1
        while isinstance(verdict, Wait):
            wait, found = verdict, list[Standing]()
            for one in self._less_urgent(rank):
                if len(found) < count and holds(wait, one):
                    found.append(one)
            if not found:
                break
            for one in found:
                free(one)
                self._freed.append(one)
            verdict, count = ask(), 2 * count  # few questions, however many hold a little each
        return verdict

    def cancel(self, take: Callable[[Standing], None]) -> None:
        """Give all of them back what they had: the task does not go."""
        for one in self._freed:
            take(one)
        self._freed.clear()

    def settle(
        self,
        file: str,
        passes: Callable[[], bool],
        free: Callable[[Standing], None],
        take: Callable[[Standing], None],
    ) -> None:
        """Let the task of this file go. Those that need not make way stay, the most urgent first."""
        if not self._freed:
            return
        gone = []
        for one in sorted(self._freed, key=_urgency):
            take(one)
            if not passes():
                free(one)
                gone.append(one)
        self.made[file] = gone
        self._freed.clear()
        assert self._least is not None
        self._least = [one for one in self._least if one not in gone]

    def _less_urgent(self, rank: int) -> Iterable[Standing]:
        """The tasks that may make way for one of this rank, the least urgent first."""
        if self._least is None:
            self._least = sorted(self.ready(), key=_urgency, reverse=True)
        for one in self._least:
            if one.task.rank <= rank:
                return
            if one not in self._freed:
                yield one


def _urgency(one: Standing) -> tuple[int, str]:
    return one.task.rank, one.task.order


def passes(verdict: Verdict) -> bool:
    """Whether a gate lets a task go."""
    return isinstance(verdict, Pass)
