"""How much may run at once, and the gates: units of types and limits, rates, slots of classes, closed limits, and a
worker that can run it; how tasks follow after a quota, and who gets back units that were lent. `resources` counts
them.

Law: units in doubt count as used: while the doubt lasts, nothing new begins in their place. A task that waits for
units is not overtaken by a later one that wants them, too.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from spoold.protocol.amount import amount, figure, some
from spoold.protocol.request import Verb
from spoold.rules.attempts.retry_rule import spread
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import PASS, TypeGate, Verdict, Wait, Wake
from spoold.rules.gates.resources import CLASS, LIMIT, QUOTA, RATE, TYPE, Capacity, KeptUnits, Stock, Uses
from spoold.rules.gates.standing_requests import Closed

NAMED = 3


def judge_limit(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a resource that it uses is at its limit; units in doubt count as used."""
    name = facts.stock.short_of(facts.uses)
    if name is None:
        return PASS
    there, used, doubt = facts.stock.capacity[name], facts.stock.used.get(name, 0), facts.stock.doubtful.get(name, 0)
    reason = f"{there.whose} runs at its limit: {used} of {there.setting} = {there.units}"
    if (first := facts.stock.before(name, facts.uses[name])) is not None:
        reason = f"{_waits_for(first, there)}: {used} of {there.setting} = {there.units} are in use"
    elif facts.uses[name] > 1:
        reason += f", and the task uses {facts.uses[name]}"
    reason += facts.stock.told(name)
    if idle := facts.stock.idle(name):
        reason += f"; none of it runs yet: {_standing(idle)}"
    if due := facts.stock.due.get(name, 0):
        reason += f"; tasks that lent units while they waited want them back first: {due}"
    return Wait("limit", f"{reason}; tasks in doubt count as well: {doubt}" if doubt else reason)


def _waits_for(first: KeptUnits, there: Capacity) -> str:
    return f"task {first.task}, which is before it, waits for {first.units} of {there.whose}"


def _standing(idle: tuple[str, ...]) -> str:
    return f"{some(list(idle), NAMED)} {'stands' if len(idle) == 1 else 'stand'} ready"


def _line(held: Held, wait: Wait) -> str:
    """How many tasks that use the same come before it."""
    stock, uses = held.type.stock, held.type.uses
    kinds = {LIMIT_GATE.name: (TYPE, LIMIT), RATE_GATE.name: (RATE,)}.get(wait.gate, ())
    name = stock.short_of(uses, kinds) if kinds else next((one for one in uses if one.startswith(CLASS)), None)
    return "" if name is None else stock.line(name)


def _change_of_limit(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = held.type.stock.short_of(held.type.uses)
    there = None if name is None else held.type.stock.capacity[name]
    if name is None or there is None:
        return "time"
    if (kept := held.type.stock.kept.get(name)) is not None:
        return f"it goes on when task {kept.task} has had its turn; or {there.raised}"
    if (first := held.type.stock.before(name, held.type.uses[name])) is not None:
        return f"it goes on once task {first.task} has had its turn; or {there.raised}"
    if held.type.uses[name] > there.units > 0:
        return f"it uses more than there is: {there.raised}"
    if idle := held.type.stock.idle(name):
        run = f"{idle[0]} has run (`spool explain {idle[0]}` says why no worker takes it)"
        return f"it goes on when {run}; or {there.raised}"
    return f"it goes on when one of them ends; or {there.raised}"


LIMIT_GATE = TypeGate(
    "limit",
    "fewer tasks of the type than `max_concurrent` are ready or claimed, and each limit that it uses has units left",
    frozenset({Wake.STEP}),
    _change_of_limit,
    judge_limit,
    detail=_line,
)


# The starts of tasks that use a limit, within any window of time: `rate` of a limit.
# Law: a task in ready/ may start at any moment, so it counts as a start of now. A new leader counts at least the
# starts that the leader before it knew.


def judge_rate(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while the window has no room for another start."""
    name = facts.stock.short_of(facts.uses, (RATE,))
    if name is None:
        return PASS
    there, used = facts.stock.capacity[name], facts.stock.used.get(name, 0) + facts.stock.doubtful.get(name, 0)
    reason = f"{there.whose} is at its rate: {used} of {there.setting} = {there.units} have started or may now"
    if (first := facts.stock.before(name, facts.uses[name])) is not None:
        counted = f"{used} of {there.setting} = {there.units} have started or may now"
        reason = f"{_waits_for(first, there)}: {counted}"
    return Wait("rate", reason + facts.stock.told(name), facts.opens.get(name))


def _change_of_rate(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = held.type.stock.short_of(held.type.uses, (RATE,))
    return "time" if name is None else f"time; or {held.type.stock.capacity[name].raised}"


RATE_GATE = TypeGate(
    "rate",
    "each limit that it uses has had fewer starts than its `rate` allows",
    frozenset({Wake.STEP, Wake.TIME}),
    _change_of_rate,
    judge_rate,
    detail=_line,
)


# The slots of a class: its reserved share of those that are alive, and what it may borrow.
# Law: without classes in the settings it holds nothing.


def judge_class(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while its class has no slot for it."""
    name, shares = _class_of(facts), facts.stock.shares
    if name is None or shares is None:
        return PASS
    used = facts.stock.slots_used()
    due = facts.stock.due.get(f"{CLASS}{name}", 0)
    if not due and shares.lets(name, used):
        return PASS
    mine = f"class {name} uses {amount(used.get(name, 0), 'slot')} and has {figure(shares.of(name))} of its own"
    if (reserved := sum(shares.slots.values())) > shares.total:
        mine = f"{mine}; all classes together reserve {figure(reserved)}, more than there are"
    back = f"; tasks that lent theirs while they waited want one back first: {due}" if due else ""
    return Wait(
        "class",
        f"{mine}; {sum(used.values())} of {shares.total} are in use{facts.stock.told(f'{CLASS}{name}')}{back}",
    )


def _class_of(facts: TypeFacts) -> str | None:
    return next((name.removeprefix(CLASS) for name in facts.uses if name.startswith(CLASS)), None)


def _change_of_class(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name, shares = _class_of(held.type), held.type.stock.shares
    more = name is not None and shares is not None and name not in shares.borrow
    own = f", or raise slots of [classes.{name}] or let it borrow" if more else ""
    if shares is not None and sum(shares.slots.values()) > shares.total:
        most = max(shares.slots, key=lambda each: shares.slots[each])
        own = f", or reserve less: slots of [classes.{most}]"
    return f"it goes on when a task ends; or start another worker{own}"


CLASS_GATE = TypeGate(
    "class",
    "its class has a slot of its own left, or may borrow one",
    frozenset({Wake.STEP}),
    _change_of_class,
    judge_class,
    detail=_line,
)


# Limits that are closed: by an attempt that found a quota used up, or by a person.
# Law: a closed limit holds every task that uses it, also in ready/. When the time of a quota has come, one task
# goes first; the others follow when it has ended without the same report.


def closed_limit(uses: Uses, closed: Mapping[str, Closed]) -> str | None:
    """The closed limit that such a task uses; of several the one that stays closed for longest."""
    names = [name.removeprefix(QUOTA) for name in uses if name.startswith(QUOTA)]
    return max((name for name in names if name in closed), key=lambda name: _end(closed[name]), default=None)


def judge_quota_ready(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a limit that it uses is closed. One that is ready while others wait is itself the task that
    tries, unless no worker takes it.
    """
    name = closed_limit(facts.uses, facts.closed)
    if name is None:
        if facts.passed_over.startswith(QUOTA):
            return _tried(facts.passed_over, facts)
        return PASS
    there = facts.closed[name]
    if there.quota:
        return Wait("quota", f"quota of {name}", there.until)
    return Wait("quota", f"limit {name} is closed", there.until)


def judge_quota(kind: str, facts: TypeFacts) -> Verdict:
    """Hold the task while a limit that it uses is closed, or while another task tries whether it is open again."""
    closed = judge_quota_ready(kind, facts)
    if closed is not PASS:
        return closed
    name = facts.stock.short_of(facts.uses, (QUOTA,))
    return PASS if name is None else _tried(name, facts)


def _tried(name: str, facts: TypeFacts) -> Wait:
    tried = name.removeprefix(QUOTA)
    said = f"the quota of {tried} was used up, and few tasks at a time try it again"
    return Wait("quota", said, facts.opens.get(name))


def _end(closed: Closed) -> float:
    return math.inf if closed.until is None else closed.until


def _change_of_quota(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    name = closed_limit(held.type.uses, held.type.closed)
    if name is None:
        return "the end of the task that tries it"
    open_now = f"`spool limits open {name}`"
    return open_now if wait.until is None else f"time; or {open_now}"


def _detail_of_quota(held: Held, wait: Wait) -> str:
    """Who closed it, and why."""
    name = closed_limit(held.type.uses, held.type.closed)
    if name is None:
        return ""
    verb = Verb.QUOTA if held.type.closed[name].quota else Verb.CLOSE
    return held.asked.get((verb, name), "")


QUOTA_GATE = TypeGate(
    "quota",
    "no limit that it uses is closed",
    frozenset({Wake.STEP, Wake.TIME}),
    _change_of_quota,
    judge_quota,
    detail=_detail_of_quota,
    holds_ready=True,
    judge_ready=judge_quota_ready,
)


# A worker that is awake can run it: what nobody can run takes nothing that others could use.
# Law: while no worker is awake, or one does not say what it can run, it holds nothing. It holds tasks in ready/,
# too: there they would keep the units of their limits, their locks and their budgets for as long as nobody takes
# them.


WORKER = "worker"


def judge_worker(kind: str, facts: TypeFacts) -> Verdict:
    """Hold every task of a lane that no worker can serve."""
    return Wait(WORKER, "no worker that the leader knows to be awake can run it") if facts.unserved else PASS


def _change_of_worker(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "start a worker that can run it, or change one that is awake; within its next heartbeats the task goes on"


WORKER_GATE = TypeGate(
    WORKER,
    "a worker that is awake can run it, or none is awake",
    frozenset({Wake.STEP}),
    _change_of_worker,
    judge_worker,
    holds_ready=True,
)


# The sliding window of a rate: the starts of the last seconds, and when it has room again.
# Law: the window is a little longer than the rate says: a task starts some moments after it was claimed, and two
# such moments may differ.


# How much longer, as a fraction of the rate's own time, and at most (s).
LONGER, LONGER_MAX_S = 0.1, 1.0


class Window:
    """The starts within the last seconds. Moments are monotonic (s)."""

    def __init__(self, count: int, per_s: float) -> None:
        """count: units that may begin within per_s seconds."""
        self._starts: deque[tuple[float, int]] = deque()
        self._units = 0
        self._count, self._per_s = count, per_s

    @property
    def length_s(self) -> float:
        """For how long (s) a start counts."""
        return self._per_s + min(LONGER * self._per_s, LONGER_MAX_S)

    def change(self, count: int, per_s: float) -> None:
        """Go by another rate from now on; starts that were forgotten stay so."""
        self._count, self._per_s = count, per_s

    def add(self, moment: float, units: int) -> None:
        """Count a start; no earlier than those before it."""
        self._starts.append((moment, units))
        self._units += units

    def used(self, now: float) -> int:
        """How many units have begun within the window. More than there may be count as so many."""
        while self._starts and self._starts[0][0] + self.length_s <= now:
            self._units -= self._starts.popleft()[1]
        return min(self._units, self._count)

    def opens(self, now: float) -> float | None:
        """When (monotonic, s) the next start leaves the window; None if there is none in it."""
        over = 0
        for moment, own in self._starts:
            over += own
            if self._units - over < self._count:
                return max(now, moment + self.length_s)
        return None


# How the tasks of a limit follow after one has tried its quota: few at first, then ever more.
# Law: a pure function of the time since then. Limits of different names differ a little, so that pools which share
# an account do not all come at once.


# As many may start as have started since, and as many again after each RAMP_S, give or take JITTER as a fraction.
# There is no bound after RAMP_END_S.
RAMP_S, RAMP_END_S, JITTER = 0.5, 4.0, 0.3


def ramp(limit: str, elapsed_s: float) -> tuple[int, float]:
    """How many may have started so long (s) after the trial, and in how long (s) there may be more."""
    every_s = RAMP_S * (1 + JITTER * spread(limit))
    doublings = int(elapsed_s // every_s)
    return 2 << doublings, (doublings + 1) * every_s - elapsed_s


# Who gets back the units that it lent while it waited: those that want theirs back come before every ready task.
# Law: a task gets all of its units at one moment, or none. They are judged in a settled order, and no later one
# takes what an earlier one still lacks, and no ready task does. One that finds nobody else at a resource always
# gets it back, whatever the settings say by now: it has run before, and must not wait for ever.


@dataclass(frozen=True, slots=True)
class Regained:
    """back: the keys of those that get their units now. wanted: by resource, the units that the others still lack:
    nothing else may take one, and so many are to be freed.
    """

    back: tuple[str, ...] = ()
    wanted: Mapping[str, int] = field(default_factory=dict)


def lends(uses: Uses, stock_names: Iterable[str]) -> bool:
    """Whether a task with these uses has units that others could use. stock_names: of resources with a capacity."""
    return any(name.startswith(CLASS) for name in uses) or not uses.keys().isdisjoint(stock_names)


def regained(asking: Iterable[tuple[str, Uses]], stock: Stock) -> Regained:
    """Judge those that ask, each with its key and its uses, in the order in which they come."""
    used, wanted, back = Counter(stock.used), Counter[str](), list[str]()
    now = replace(stock, used=used)
    for key, uses in asking:
        short = {name: lack for name in uses if (lack := _lack(now, name, uses[name], wanted))}
        wanted.update(short)
        if not short:
            back.append(key)
            used.update(uses)
    return Regained(tuple(back), wanted)


def told_of_lent(uses: Uses, stock: Stock) -> Iterator[str]:
    """Yield, for a person, how many units of each resource such a task lends, and how many are in use."""
    for name, units in uses.items():
        used = stock.used.get(name, 0) + stock.doubtful.get(name, 0)
        if name.startswith(CLASS):
            yield f"a slot of class {name.removeprefix(CLASS)}, of which {used} are in use"
        elif (there := stock.capacity.get(name)) is not None and name.startswith((TYPE, LIMIT)):
            yield f"{units} of {there.whose}, with {used} of {there.setting} = {there.units} in use"


def _lack(stock: Stock, name: str, units: int, wanted: Mapping[str, int]) -> int:
    """How many units are missing; 0 for none."""
    if name in wanted:
        return units
    taken = stock.used.get(name, 0) + stock.doubtful.get(name, 0)
    if name.startswith(CLASS):
        return int(not _has_slot(stock, name.removeprefix(CLASS), taken))
    there = stock.capacity.get(name)
    return 0 if there is None or not taken else max(0, min(taken, taken + units - there.units))


def _has_slot(stock: Stock, name: str, taken: int) -> bool:
    shares = stock.shares
    return shares is None or taken < max(1, shares.of(name)) or shares.lets(name, stock.slots_used())
