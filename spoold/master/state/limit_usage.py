"""Usage of limits: how much of each is in use and lent, when tasks started, and which task tries one again.

A token in ready/ may start at any moment, so usage counts it there. One that has left ready/, other than back to
waiting/, has started, by the time at which the leader notices it at the latest; so does a claim that was never seen
ready. A start counts for the window of each rate that it uses.

Law: counted anew from the listings in every step, so that no crash leaves a count wrong; moves of the same step are
counted as they are made. Units that may be in use count as used, and a claim without a loan that stands holds its
units: while the doubt lasts, nothing new begins in their place. No start is left out; one may count twice, or too
late. One lane is asked at a time to try a limit. If no worker takes its task, and a lane that was not asked yet waits
for the same trial, that one is asked next. Then all are asked anew, and each has twice as long. None of this is
saved: `limits.capacity` says what a new leader begins with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from spoold.protocol.names import TaskName, key
from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark
from spoold.protocol.settings import RateSettings, Settings
from spoold.rules.gates.limit_gates import Window
from spoold.rules.gates.resources import BREAKER, CLASS, QUOTA, UNKNOWN, Capacity, Resources, Stock, Uses


class Usage:
    """The units in use by name of the resource, as `stock` shows them at every moment of a step.

    slots: of the workers that are alive, as their heartbeats say. lent: units that claimed tasks have lent, which are
    not in use; asked: those of them that their tasks want back, and have not. kept, wanted: what the last step kept
    back for waiting tasks, and what the first of them lack, as in `Way`.
    """

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()
        self._doubtful: Counter[str] = Counter()
        self.stock = Stock({}, self._used, self._doubtful)
        self._resources: Resources | None = None
        self.slots = 0
        self.lent: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.kept: Mapping[str, list[tuple[str, int]]] = {}
        self.wanted: Mapping[str, tuple[str, int]] = {}

    def keeps(self, uses: Uses) -> bool:
        """Whether something is kept back of what such a task would take; of a class, whatever class it is."""
        return any(name in uses or name.startswith(CLASS) for name in self.kept)

    def see_slots(self, slots: int) -> None:
        """Note how many slots the workers have that are alive."""
        self.slots = slots

    def under(self, settings: Settings) -> Resources:
        """Return what lanes use under these settings; worked out once for as long as they stay the same."""
        if self._resources is None or self._resources.settings is not settings:
            self._resources = Resources(settings)
        return self._resources

    def begin(self, capacity: Mapping[str, Capacity], possible: Iterable[Uses]) -> None:
        """Count from nothing again. possible: the uses of tasks that are not seen but may be active all the same."""
        self._used.clear()
        self._doubtful.clear()
        self.lent.clear()
        self.asked.clear()
        self.stock = Stock(capacity, self._used, self._doubtful)
        for uses in possible:
            self._doubtful.update({name: units for name, units in uses.items() if name != UNKNOWN})
            self._doubt(uses.get(UNKNOWN, 0))

    def take(self, uses: Uses, count: int = 1) -> None:
        """Count so many more ready or claimed tasks with these uses."""
        for name, units in uses.items():
            self._used[name] += units * count
        self._doubt(uses.get(UNKNOWN, 0) * count)

    def give_back(self, uses: Uses) -> None:
        """Count one ready or claimed task with these uses less."""
        self.take(uses, -1)

    def lend(self, uses: Uses) -> None:
        """Note that a claimed task has lent what it uses."""
        self.lent.update(uses)

    def keep(self, due: Mapping[str, int], asked: Iterable[Uses]) -> None:
        """Let no ready task take what tasks want back that lent it. due: the units that they lack; asked: what they
        use.
        """
        self.stock = replace(self.stock, wanted=frozenset(due), due=due)
        for uses in asked:
            self.asked.update(uses)

    def in_use(self) -> Iterator[tuple[str, int]]:
        """Yield each resource that is seen in use, with its units, by name."""
        yield from sorted((name, units) for name, units in self._used.items() if units)

    def _doubt(self, count: int) -> None:
        """Count so many more tasks of unknown type, each of which may use the most of every resource."""
        if count:
            for name, there in self.stock.capacity.items():
                self._doubtful[name] += there.most * count


# The loans of units that stand: which claimed tasks have lent what they use, and which want it back.


# A loan, whatever its verb: the key of its task, and UNIQUE.
Loan = tuple[str, str]


def loan_of(request: Request) -> Loan:
    """Return the loan that a request is about."""
    return key(request.target), request.unique


@dataclass(slots=True)
class UnitsLent:
    """standing: loans that leaders have taken, by the key of the task and the mark of its worker. given: loans that
    this leader has given back, or tried to. doubted: loans whose claim was not there at the last look.
    """

    standing: dict[tuple[str, str], Request] = field(default_factory=dict)
    given: set[Loan] = field(default_factory=set)
    doubted: set[Loan] = field(default_factory=set)

    def see(self, requests: Iterable[Request]) -> None:
        """Take in the requests that stand. While a loan gets another name, a listing may show both: the later one
        counts.
        """
        self.standing = {}
        for request in sorted((r for r in requests if r.verb in OF_A_LOAN and r.verb is not Verb.LEND), key=_later):
            if loan_of(request) not in self.given:
                self.standing[key(request.target), request.unique.partition("-")[0]] = request

    def of(self, node: str, task_ids: Iterable[str]) -> dict[str, Request]:
        """Return the loans of these tasks, all claimed by one worker, by the key of the task."""
        if not self.standing:
            return {}
        mark = loan_mark(node)
        found = ((key(task_id), self.standing.get((key(task_id), mark))) for task_id in task_ids)
        return {task_key: request for task_key, request in found if request is not None}

    def forget(self, still: Callable[[Loan], bool]) -> None:
        """Forget loans that were given back and cannot be seen again. still: whether one can."""
        self.given = {loan for loan in self.given if still(loan)}

    def give(self, loan: Loan) -> None:
        """Note that a loan is over: its units are the task's again."""
        self.given.add(loan)

    def doubt(self, loans: set[Loan]) -> set[Loan]:
        """Note the loans without a claim; return those that had none at the last look either."""
        twice = loans & self.doubted
        self.doubted = loans
        return twice


def _later(request: Request) -> tuple[bool, str]:
    return request.verb is Verb.REGAIN, request.unique


# The ready task that is to try a limit, or a type, again, and how long the others wait for a worker to take it.


# For so many heartbeat intervals a task may stand untaken at first, and at last.
FIRST_BEATS, LAST_BEATS = 2.0, 64.0


@dataclass(slots=True)
class Asked:
    """Who is asked. task and lane: the one that stands in ready/; since: when (monotonic, s) it was first seen there;
    passed: the lanes that were asked in vain; rounds: how often all were.
    """

    task: TaskName | None = None
    lane: str = ""
    since: float = 0.0
    passed: set[str] = field(default_factory=set)
    rounds: int = 0

    def see(self, lane: str, task: TaskName, now: float) -> None:
        """Note the task that stands in ready/. now: monotonic, s."""
        if self.task != task:
            self.task, self.lane, self.since = task, lane, now

    def see_none(self) -> None:
        """Note that none stands there: no other lane could be asked."""
        self.task = None
        self.passed.clear()

    def in_vain(self, now: float, interval_s: float) -> bool:
        """Whether the task has stood there for as long as it may. now: monotonic, s."""
        beats = min(FIRST_BEATS * 2**self.rounds, LAST_BEATS)
        return self.task is not None and now - self.since >= beats * interval_s

    def pass_on(self, others: Collection[str]) -> bool:
        """Pass over the lane that was asked. others: the other lanes that wait for the trial; False if none does."""
        if not others:
            return False
        if self.passed.issuperset(others):
            self.passed.clear()
            self.rounds += 1
        self.passed.add(self.lane)
        self.task = None
        return True


# Starts of tasks that use limits: the figure behind rates, and behind the trials of a quota and of a breaker.


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
