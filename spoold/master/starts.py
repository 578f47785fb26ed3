"""Starts of tasks that use limits: the figure behind rates, and behind the trials of a quota
and of a breaker.

A token in ready/ may start at any moment, so usage counts it there. One that has left ready/, other than back to
waiting/, has started, by the time at which the leader notices it at the latest; so does a claim that was never seen
ready. A start counts for the window of each rate that it uses.

Law: no start is left out; one may count twice, or too late. What is kept here is of this leader: `counting` says what
a new one begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from spoold.master.asked import Asked
from spoold.protocol.names import TaskName, key
from spoold.protocol.settings import RateSettings
from spoold.rules.scheduling.resources import BREAKER, QUOTA
from spoold.rules.scheduling.windows import Window

# An attempt: the key of its task, and its number.
Attempt = tuple[str, int]
# An attempt of the past: when (monotonic, s) it began at the latest, the key of its task, and its units by limit;
# None: it may use any.
Past = tuple[float, str, Mapping[str, int] | None]
# Its lane, and its name.
Start = tuple[str, TaskName]


@dataclass(slots=True)
class Trial:
    """The trial of one limit, or of one type. task: which attempt tries; since: when (monotonic, s) it went well,
    None before that; begun: how many have started since; asked: who does so as soon as a worker takes one.
    """

    task: TaskName | None = None
    since: float | None = None
    begun: int = 0
    asked: Asked = field(default_factory=Asked)

    def started(self, task: TaskName) -> None:
        """Note the start of a task that uses the limit, or is of the type."""
        if self.since is not None:
            self.begun += 1
        elif self.task is None:
            self.task, self.asked = task, Asked()

    @property
    def tries(self) -> str:
        """Return the id of the task that tries, or is to try; '' for none yet."""
        task = self.task or self.asked.task
        return "" if task is None else task.id

    def undecided(self) -> None:
        """Note that the task ended without saying anything about what it tried."""
        self.task = None

    def went_well(self, now: float) -> None:
        """Note that the limit is open again. now: monotonic, s."""
        self.task, self.since, self.begun = None, now, 0


@dataclass(slots=True)
class Starts:
    """One leader's count. opens: when (s since 1970) a resource has room again, by its name; trials: of limits, by
    name; probes: of breakers, by type; shut: limits that were closed or on trial at the last look; looked: whether
    `begun` was asked before: what ran already when this leader came may have begun long ago, and tries nothing.
    served: by node, the attempts that say in its last beat that their limits serve them. counted: until when
    (monotonic, s) a start of a task, by its key, is in the window of a rate.
    """

    standing: dict[Attempt, Start] = field(default_factory=dict)
    claimed: set[Attempt] = field(default_factory=set)
    windows: dict[str, Window] = field(default_factory=dict)
    opens: dict[str, float] = field(default_factory=dict)
    trials: dict[str, Trial] = field(default_factory=dict)
    probes: dict[str, Trial] = field(default_factory=dict)
    shut: frozenset[str] = frozenset()
    looked: bool = False
    served: dict[str, frozenset[Attempt]] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)

    def hear(self, node: str, served: Collection[Attempt]) -> bool:
        """Replace the attempts of a node that say that their limits serve them; whether some are new."""
        before, now = self.served.pop(node, frozenset()), frozenset(served)
        if now:
            self.served[node] = now
        return not now <= before

    def serves(self, task: TaskName) -> bool:
        """Whether this attempt has said so."""
        return any((key(task.id), task.attempt) in served for served in self.served.values())

    def may_start(self, task: TaskName, lane: str) -> None:
        """Note a token of a lane that uses limits, which the leader has moved, or tried to move, into ready/."""
        self.standing[key(task.id), task.attempt] = lane, task

    def stays(self, task: TaskName) -> None:
        """Note a token that the leader has taken back from ready/."""
        self.standing.pop((key(task.id), task.attempt), None)

    def begun(
        self,
        ready: Iterable[Start],
        claimed: Iterable[Start],
        waits: Callable[[Attempt], bool],
        missing: Collection[str],
    ) -> list[Start]:
        """Return what has begun since the last time. ready, claimed: what the listings show of lanes that use limits;
        missing: the keys of tasks that were seen nowhere.
        """
        stand, run = (
            {(key(task.id), task.attempt): (lane, task) for lane, task in some} for some in (ready, claimed)
        )
        self.looked = True
        left = {a: start for a, start in self.standing.items() if a not in stand and not waits(a)}
        new = {attempt: start for attempt, start in run.items() if attempt not in self.claimed}
        self.standing = stand
        # One that is on its way between two names is still known, and does not count twice.
        known = {a for a in (*self.claimed, *left) if a in run or a[0] in missing}
        self.claimed = known | run.keys()
        return list({**left, **new}.values())

    def see_rates(self, rates: Mapping[str, RateSettings], past: Callable[[float], Iterable[Past]]) -> None:
        """Count by these rates from now on. past: the attempts of so many seconds (s); it is asked for rates that
        were not counted before.
        """
        new = {name: Window(rate.count, rate.per_s) for name, rate in rates.items() if name not in self.windows}
        if new:
            for moment, task_key, uses in past(max(window.length_s for window in new.values())):
                for name, window in new.items():
                    units = rates[name].count if uses is None else uses.get(name, 0)
                    if units > 0:
                        window.add(moment, units)
                        self._count(task_key, moment + window.length_s)
        kept = {name: window for name, window in self.windows.items() if name in rates}
        for name, window in kept.items():
            window.change(rates[name].count, rates[name].per_s)
        self.windows = kept | new

    def count(self, rate: str, task_key: str, moment: float, units: int) -> None:
        """Count the start of a task in the window of a rate. moment: monotonic, s."""
        self.windows[rate].add(moment, units)
        self._count(task_key, moment + self.windows[rate].length_s)

    def forget_before(self, now: float) -> None:
        """Forget which tasks have started so long ago that no rate counts them. now: monotonic, s."""
        for task_key in [task_key for task_key, until in self.counted.items() if until <= now]:
            del self.counted[task_key]

    def counts(self, task_key: str) -> bool:
        """Whether a rate counts a start of this task."""
        return task_key in self.counted

    def _count(self, task_key: str, until: float) -> None:
        self.counted[task_key] = max(until, self.counted.get(task_key, until))

    def look_again(self, opens: Mapping[str, float]) -> None:
        """Replace what is known of when there is room again."""
        self.opens = dict(opens)

    def close_again(self, limit: str) -> None:
        """Note that a limit is not on trial."""
        self.trials.pop(limit, None)

    def try_out(self, limit: str) -> None:
        """Note that a limit is on trial."""
        self.trials.setdefault(limit, Trial())

    def trial_of(self, resource: str) -> Trial | None:
        """Return the trial under way of what such a resource counts, None if there is none."""
        if resource.startswith(BREAKER):
            return self.probes.get(resource.removeprefix(BREAKER))
        return self.trials.get(resource.removeprefix(QUOTA))

    def trying(self) -> dict[str, str]:
        """Return the limits on trial, each with the id of the task that tries, or is to try; '' for none yet."""
        return {name: trial.tries for name, trial in self.trials.items() if trial.since is None}

    def passed_over(self, lane: str) -> str:
        """Return the resource that tasks of the lane are not to try now, since no worker took one; '' for none."""
        for kind, trials in ((QUOTA, self.trials), (BREAKER, self.probes)):
            for name, trial in trials.items():
                if lane in trial.asked.passed:
                    return f"{kind}{name}"
        return ""

    def see_shut(self, limits: frozenset[str]) -> tuple[list[str], list[str]]:
        """Return which limits have been shut, and which have been opened, since the last look."""
        before, self.shut = self.shut, limits
        return sorted(limits - before), sorted(before - limits)
