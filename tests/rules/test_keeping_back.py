"""A task that needs several scarce things comes to its turn, however many later ones want one of them each.

A generator draws pools of all kinds of things: limits, a type with a cap, classes, locks, a budget. Streams of tasks
that need one or two of them never end, and at most one task ends at a time, so that no two things ever come free
together by chance. Some tasks wait for a task below them meanwhile.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from spoold.protocol.lanes import kind_in
from spoold.protocol.names import TaskName, key
from spoold.protocol.settings import Settings
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates.budget_gate import Book, Purse
from spoold.rules.gates.budget_usage import Asked
from spoold.rules.gates.facts import Conditions, Held, Parent, TypeFacts
from spoold.rules.gates.gate import Pass, Wait
from spoold.rules.gates.lock_holders import Book as LockBook
from spoold.rules.gates.lock_holders import Demand
from spoold.rules.gates.registry import change, judge_type
from spoold.rules.gates.resources import Capacity, KeptUnits, Shares, Stock
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.promotion import KeepingBack, LaneView, promotions
from spoold.rules.scheduling.queues import Standing, Way
from spoold.rules.scheduling.waiting_task import Entry

SETTINGS = Settings.model_validate(
    {"budgets": {"scarce": {"tokens": 10}, "wide": {"tokens": 10_000}, "strict": {"tokens": 1, "over": "fail"}}}
)
# Tasks below others are more urgent than the streams, behind which they would wait for ever by right.
STREAM, BELOW, LATER, URGENT = 5005, 5003, 5002, 4990
# A task has its turn after so many ends of others; nearly all need fewer than a fifth.
ENDS = 200
# A task that waits for another one for so many steps has waited for long.
LONG_S = 40


@dataclass(frozen=True)
class Needs:
    """What a task needs: units by resource, patterns that it locks, and tokens of its budgets, the first of which is
    scarce.
    """

    kind: str = "t"
    uses: tuple[tuple[str, int], ...] = ()
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    tokens: int = 0
    budgets: tuple[str, ...] = ("scarce",)

    @property
    def lane(self) -> str:
        return ",".join([f"type={self.kind}", *(f"use={name}={units}" for name, units in self.uses)])

    def conditions(self, *, child: bool = False) -> Conditions:
        demand = Demand(self.write, self.read, child) or None
        asked = Asked(self.budgets, own=(("tokens", self.tokens * 1_000_000),)) if self.tokens else None
        more = tuple((gate, said) for gate, said in (("budget", asked), ("locks", demand)) if said is not None)
        return Conditions(more=more, child=child)


@dataclass
class Pool:
    """A leader's steps over one pool. waits: tasks that run and wait for a task below them, by key. unread: what
    those have reserved of the budget that ended since the last step, whose records are read in the next one.
    """

    capacity: dict[str, Capacity]
    shares: Shares | None
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    now: Now = field(default_factory=lambda: Now(1000.0, 1_770_000_000.0))
    backlog: Backlog = field(default_factory=lambda: Backlog(lambda _: Parent.UNKNOWN))
    needs: dict[str, Needs] = field(default_factory=dict)
    ready: dict[str, Standing] = field(default_factory=dict)
    running: dict[str, Standing] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    budget: Book = field(default_factory=Book)
    unread: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gather()

    def gather(self) -> None:
        """What the gates of tasks go by; the tasks are grouped by it."""
        purse = Purse(SETTINGS, self.budget, self.now.wall)
        asked = (one.conditions.asks("budget") for one in (*self.ready.values(), *self.running.values()))
        purse.reserve_all(("t", one) for one in (*asked, *self.unread) if isinstance(one, Asked))
        self.unread.clear()
        self.backlog.gathered = {"locks": self.backlog.locks.book, "budget": purse}

    def add(self, task_id: str, needs: Needs, rank: int, *, child: bool = False) -> None:
        name = TaskName(rank, f"{next(self.numbers):010}-1", task_id)
        self.needs[key(task_id)] = needs
        self.backlog.add(Entry(name.encode(), needs.lane, needs.conditions(child=child)), self.now)

    def uses(self, lane: str) -> dict[str, int]:
        pairs = (part.split("=")[1:] for part in lane.split(",")[1:])
        return {f"type:{kind_in(lane)}": 1} | {name: int(units) for name, units in pairs}

    def step(self) -> list[str]:
        self.now = Now(self.now.monotonic + 1, self.now.wall + 1)
        active = {**self.ready, **self.running}
        used: Counter[str] = Counter()
        for task_key, one in active.items():
            used.update(self.uses(one.lane) if task_key not in self.waits else {})  # units are lent, and nothing else
        locks = self.backlog.locks
        locks.hold(
            {k: demand for k, one in active.items() if isinstance(demand := one.conditions.asks("locks"), Demand)}
        )
        locks.see_ready(self.ready.__contains__)
        locks.see_parents(self.waits.keys(), self.idle())
        self.gather()
        self.backlog.tick(self.now)
        stock = Stock(self.capacity, used, shares=self.shares)
        lanes = {*self.backlog.lanes(), *locks.book.line.lanes()}
        facts = {lane: TypeFacts(uses=self.uses(lane), stock=stock) for lane in lanes}
        locks.pass_over(
            {lane for lane in locks.book.line.lanes() if not isinstance(judge_type("", facts[lane]), Pass)}
        )
        way = Way(
            self.ready.values,
            lambda: [replace(one, waits=k in self.waits, idle=k in self.idle()) for k, one in self.running.items()],
        )
        views = {
            lane: LaneView(kind_in(lane), tuple(o.task.rank for o in self.ready.values() if o.lane == lane))
            for lane in self.backlog.lanes()
        }
        chosen = promotions(self.backlog, views, facts, 3, self.now, way, self.uses)
        for one in itertools.chain.from_iterable(way.made.values()):
            del self.ready[key(one.task.id)]
            self.backlog.add(Entry(one.task.encode(), one.lane, one.conditions), self.now)
        for entry in chosen:
            self.backlog.remove(key(entry.name.id))
            self.ready[key(entry.name.id)] = Standing(entry.name, entry.lane, entry.conditions)
        self.judge()
        return [entry.name.id for entry in chosen]

    def judge(self) -> None:
        """Nothing is used beyond what there is, and nothing that conflicts is held at once."""
        active = {**self.ready, **self.running}
        used = Counter[str]()
        for task_key, one in active.items():
            used.update(self.uses(one.lane) if task_key not in self.waits else {})
        assert all(used[name] <= there.units for name, there in self.capacity.items()), used
        assert sum(self.needs[k].tokens for k in active) <= 10
        demands = [d for one in active.values() if isinstance(d := one.conditions.asks("locks"), Demand)]
        assert not any(one.clash(other) for one, other in itertools.combinations(demands, 2))

    def idle(self) -> frozenset[str]:
        """Those that have waited for long."""
        return frozenset(task_key for task_key in self.waits if self.now.monotonic > self.waited[task_key] + LONG_S)

    def end(self, task_key: str) -> None:
        """A task ends, and with it the one above that waits for it."""
        if isinstance(asked := self.running.pop(task_key).conditions.asks("budget"), Asked):
            self.unread.append(asked)
        for above in [k for k, below in self.waits.items() if below == task_key]:
            del self.waits[above]
            self.end(above)


def drawn(chance: random.Random) -> tuple[Pool, list[Needs]]:
    """A pool, and what the tasks of its streams need."""
    capacity = {
        f"limit:{n}": Capacity(chance.randint(1, 3), n, "") for n in chance.sample("abc", chance.randint(1, 3))
    }
    if chance.random() < 0.4:
        capacity["type:t"] = Capacity(chance.randint(1, 3), "t", "")
    total = chance.randint(2, 4)
    borrow = frozenset(n for n in ("k", "default") if chance.random() < 0.5)
    shares = Shares(total, {"k": chance.randint(1, total)}, borrow) if chance.random() < 0.4 else None
    things = [*(n for n in capacity if n != "type:t"), *("xy" if chance.random() < 0.6 else ""), "tokens"]
    some = [chance.sample(things, chance.choice([1, 1, 1, 2])) for _ in range(chance.randint(2, 4))]
    return Pool(capacity, shares), [needing(chance, capacity, shares, of_them, most=1) for of_them in some]


def needing(
    chance: random.Random, capacity: dict[str, Capacity], shares: Shares | None, things: list[str], *, most: int
) -> Needs:
    """What a task needs of these things; most: the most units of a limit, where there are so many."""
    uses = [(n, chance.randint(1, min(most, capacity[n].units))) for n in things if n in capacity]
    if shares is not None:
        uses.append((f"class:{chance.choice(['k', 'default'])}", 1))
    locked = [n for n in things if n in "xy"]
    write = tuple(n for n in locked if chance.random() < 0.6)
    read = tuple(n for n in locked if n not in write)
    tokens = chance.randint(1, 2 if most == 1 else 10) if "tokens" in things else 0
    budgets = ("scarce",) if chance.random() < 0.5 else ("scarce", "wide")
    return Needs(chance.choice("tu"), tuple(sorted(uses)), write, read, tokens, budgets)


def plays(seed: int) -> int:
    """After how many ends of others the urgent task has its turn. Errors: AssertionError if it has none."""
    chance = random.Random(f"keeping back {seed}")
    pool, streams = drawn(chance)
    things = [n for n in (*pool.capacity, "x", "y", "tokens") if n != "type:t"]
    urgent = needing(
        chance, pool.capacity, pool.shares, chance.sample(things, chance.randint(1, len(things))), most=3
    )
    rank = chance.choice([URGENT, URGENT, LATER, STREAM])  # younger ones of its rank do not pass it either
    came, ends, idle, strangers = Counter[int](), 0, 0, set[str]()
    while ends < 10 + ENDS:
        open_ids = [e.name.id for _, e in pool.backlog.items()]
        for number, needs in enumerate(streams):
            mine = sum(i.startswith(f"s{number}-") for i in (*open_ids, *pool.ready, *pool.running))
            for _ in range(min(2 - sum(i.startswith(f"s{number}-") for i in open_ids), 6 - mine)):
                came[number] += 1
                pool.add(f"s{number}-{came[number]}", needs, STREAM)
        if ends == 10 and "urgent" not in pool.needs:
            pool.add("urgent", urgent, rank)
        chosen = pool.step()
        if "urgent" in {*pool.ready, *pool.running}:
            return ends - 10
        for task_key in [k for k in pool.ready if chance.random() < 0.5]:
            pool.running[task_key] = pool.ready.pop(task_key)
        able = [k for k in pool.running if k not in pool.waits]
        idle = 0 if able or pool.ready or chosen else idle + 1
        patience = LONG_S if any(pool.waits[k] in strangers for k in pool.waits) else 0
        assert idle < patience + 5, f"nothing runs, and {open_ids} wait"
        if able and chance.random() < 0.7:
            task_key = chance.choice(able)
            if chance.random() < 0.15 and rank < BELOW and (below := below_of(pool, task_key, chance)) is not None:
                pool.waits[task_key], pool.waited[task_key] = f"below-{task_key}", pool.now.monotonic
                stranger = chance.random() < 0.3  # a task may wait for one that it did not submit
                below = replace(below, tokens=0) if stranger else below
                strangers |= {pool.waits[task_key]} if stranger else set()
                pool.add(f"below-{task_key}", below, BELOW, child=not stranger)
            else:
                pool.end(task_key)
                ends += 1
    raise AssertionError(f"the urgent task waits for ever, for {urgent}, in {pool.capacity}, {pool.shares}")


def below_of(pool: Pool, task_key: str, chance: random.Random) -> Needs | None:
    """What a task below this one needs: what may run beside all that wait; None where it must not have one."""
    if task_key.startswith("below-below") or len(pool.waits) > 2:
        return None
    above = pool.needs[task_key]
    room = 10 - sum(pool.needs[k].tokens for k in pool.waits) - above.tokens
    tokens = chance.randint(1, min(2, room)) if above.tokens and room > 0 else 0
    uses = chance.choice([above.uses, tuple((name, 1) for name in pool.capacity if name.startswith("limit:"))])
    return Needs(chance.choice("tu"), uses, (), above.read if chance.random() < 0.5 else (), tokens)


@pytest.mark.turns
@pytest.mark.parametrize("first", range(0, 600, 20))
def test_an_urgent_task_has_its_turn_whatever_it_needs_together(first: int) -> None:
    for seed in range(first, first + 20):
        plays(seed)


@pytest.mark.parametrize(
    ("of", "name", "instead"),
    [
        (KeepingBack, "weigh", lambda *_: None),
        (LockBook, "_waits_for", lambda *_: False),
        (Purse, "group", lambda self, kind, asked, *, child=False: tuple(self.accounts(kind, asked)) or None),
        (KeepingBack, "_of_children", lambda _: set()),
        (Pool, "idle", lambda _: frozenset()),
    ],
    ids=[
        "nothing is kept",
        "children in line",
        "children at a budget",
        "nothing for children",
        "nothing for strangers",
    ],
)
def test_each_part_of_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str, instead: Callable[..., object]
) -> None:
    monkeypatch.setattr(of, name, instead)
    with pytest.raises(AssertionError, match=r"waits for ever|nothing runs"):
        deque(map(plays, range(480)), maxlen=0)


def seen(capacity: dict[str, Capacity], kept: dict[str, KeptUnits]) -> TypeFacts:
    return TypeFacts(uses={"type:t": 1, **dict.fromkeys(capacity, 1)}, stock=Stock(capacity, kept=kept))


def test_the_gates_say_for_whom_something_is_kept() -> None:
    kept = KeptUnits(1, "both")
    facts = seen({"limit:a": Capacity(1, "limit a", "[limits.a] max")}, {"limit:a": kept})
    said = judge_type("t", facts)
    assert isinstance(said, Wait)
    assert said.reason == (
        "limit a runs at its limit: 0 of [limits.a] max = 1; for task both, which comes first and still lacks "
        "something else, 1 of it is kept"
    )
    held = Held("x", "t", facts)
    assert change(held, said).startswith("it goes on when task both has had its turn; or raise it: ")
    rated = judge_type("t", seen({"rate:a": Capacity(1, "limit a", "[limits.a] rate.count")}, {"rate:a": kept}))
    assert isinstance(rated, Wait)
    assert rated.reason.endswith("1 of it is kept")
    stock = Stock(shares=Shares(1, {"k": 1}, frozenset()), kept={"class:k": kept})
    shared = judge_type("t", TypeFacts(uses={"class:k": 1}, stock=stock))
    assert isinstance(shared, Wait)
    assert shared.reason.endswith("1 of it is kept")


def test_tasks_below_others_are_few_queues_at_a_budget_whatever_they_ask_for() -> None:
    purse = Purse(SETTINGS, Book(), 0.0)
    asked = [Asked(("scarce",), own=(("tokens", 3**n % 10**15),)) for n in range(5000)]
    assert len({purse.group("t", one, child=True) for one in asked}) <= 50
    assert purse.group("t", asked[1], child=True) != purse.group("t", asked[9], child=True)


def two_limits() -> Pool:
    """A pool in which a task of a stream runs, and uses b."""
    pool = Pool({"limit:a": Capacity(1, "limit a", ""), "limit:b": Capacity(1, "limit b", "")}, None)
    pool.add("low", Needs(uses=(("limit:b", 1),)), STREAM)
    start(pool)
    return pool


def start(pool: Pool) -> list[str]:
    """A step; whatever is ready then runs."""
    chosen = pool.step()
    pool.running |= pool.ready
    pool.ready.clear()
    return chosen


def test_nothing_is_kept_for_what_uses_more_than_there_is() -> None:
    pool = two_limits()
    pool.add("much", Needs(uses=(("limit:a", 1), ("limit:b", 2))), URGENT)
    pool.add("later", Needs(uses=(("limit:a", 1),)), STREAM)
    assert pool.step() == ["later"]


def test_nothing_is_kept_for_what_a_budget_refuses_for_good() -> None:
    pool = two_limits()
    pool.add("dear", Needs(uses=(("limit:a", 1), ("limit:b", 1)), tokens=2, budgets=("strict",)), URGENT)
    pool.add("later", Needs(uses=(("limit:a", 1),)), STREAM)
    assert pool.step() == ["later"]


def test_who_waits_for_an_earlier_one_as_well_keeps_its_place_in_line_no_more() -> None:
    pool = two_limits()
    pool.add("holds", Needs(write=("x/1",)), STREAM)
    start(pool)
    pool.add("urgent", Needs(uses=(("limit:a", 1),), write=("x/**",)), URGENT)
    pool.add("behind", Needs(write=("x/2",)), STREAM)
    assert start(pool) == []
    pool.add("first", Needs(uses=(("limit:a", 1),)), URGENT - 1)
    assert start(pool) == ["first"]
    assert start(pool) == ["behind"]
