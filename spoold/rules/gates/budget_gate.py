"""What attempts may cost together: USD, tokens or seconds, as `[budgets.NAME]` says.

What is reserved, its form in the snapshot, and the gate; what was spent is in `budget_usage`. A task reserves its own
`budget`, else what is usual for its type, before each attempt; its record settles that.

Law: what is spent or reserved never exceeds a limit, but for what an attempt costs beyond its reservation. Until a
new leader has read what ended before it, nothing that draws on a budget starts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.amount import amount, clamped, plus
from spoold.protocol.names import is_task, key_in, parse_task
from spoold.protocol.result import Code
from spoold.protocol.settings import Amounts, BudgetSettings, Settings
from spoold.protocol.task import Task
from spoold.rules.gates.budget_usage import (
    MOST_MICROS,
    NOTHING,
    UNIT,
    Account,
    Asked,
    Sums,
    Tally,
    accounts_of,
    amounts,
    asked_by,
    day_of,
    drawing,
    micros,
)
from spoold.rules.gates.facts import Conditions, Facts, Held, Known
from spoold.rules.gates.gate import PASS, Refuse, TaskGate, Tasks, Verdict, Wait, Wake

NAME = "budget"
_UNITS = {"cost_usd": "USD", "tokens": "tokens", "task_s": "s"}
_OPTIONS = {"cost_usd": "--cost-usd", "tokens": "--tokens", "task_s": "--task-s"}


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold or refuse a task for whose next attempt a budget has too little left."""
    purse, asked = _purse(facts), _asked(conditions)
    if purse is None or purse.group(facts.kind, asked) is None:
        return PASS
    if purse.closed:
        return Wait(NAME, purse.closed)
    found: list[Wait | Refuse] = [_verdict(purse, short) for short in purse.short(facts.kind, asked)]
    refused = next((verdict for verdict in found if isinstance(verdict, Refuse)), None)
    return refused or next(iter(found), None) or _behind(purse, conditions, facts) or PASS


def _behind(purse: Purse, conditions: Conditions, facts: Facts) -> Wait | None:
    """Who else of the same queue waits, as far as `explain` knows: a leader asks for the first one of it alone."""
    mine = purse.group(facts.kind, _asked(conditions), child=conditions.child)
    for one in purse.book.first:
        if one.file < facts.file and purse.group(one.kind, one.asked, child=one.child) == mine:
            short = next((short for short in purse.short(one.kind, one.asked) if short.need), None)
            if short is not None:
                needs = f"{figure(short.need or 0, short.name)} {_UNITS[short.name]} of {_named(short.account)}"
                waits = f"task {one.id}, which is before it, waits for {needs}: {_left(short)}"
                return Wait(NAME, waits, behind=key_in(one.file))
    return None


def _verdict(purse: Purse, short: Short) -> Wait | Refuse:
    budget, reason = purse.settings.budgets[short.account[0]], words(short)
    if budget.over == "fail" and short.for_good:
        return Refuse(NAME, Code.BUDGET_EXCEEDED, reason)
    return Wait(NAME, reason, purse.tomorrow() if budget.per == "day" and short.need is not None else None)


def words(short: Short) -> str:
    """The sentence on a budget with too little left."""
    what, unit = _named(short.account), _UNITS[short.name]
    raised = f"`spool budget raise {short.account[0]} {_OPTIONS[short.name]} …`"
    if short.need is None:
        return f"{what}: nobody knows how many {unit} it may come to; give it a budget with {short.name}"
    needs = f", and it reserves {figure(short.need, short.name)}" if short.need else ""
    return f"{what}: {_left(short)}{needs}; {raised} adds to it"


def _named(account: Account) -> str:
    name, period = account
    return f"budget {name}" if period == "total" else f"budget {name} ({period.replace(':', ' ', 1)})"


def _left(short: Short) -> str:
    used, limit = figure(short.used, short.name), figure(short.limit, short.name)
    return f"{used} of {limit} {_UNITS[short.name]} are spent or reserved"


def figure(value: int, name: str) -> str:
    """An amount in millionths for people: USD with two decimals or more, others with as few as they need."""
    whole, part = divmod(value, UNIT)
    decimals = f"{part:06}".rstrip("0")
    if name == "cost_usd":
        decimals = decimals.ljust(2, "0")
    return f"{whole:,}.{decimals}" if decimals else f"{whole:,}"


def _purse(facts: Facts) -> Purse | None:
    found: Purse | None = facts.more.get(NAME)
    return found


def _asked(conditions: Conditions) -> Asked:
    asked = conditions.asks(NAME)
    return asked if isinstance(asked, Asked) else NOTHING


def _group(conditions: Conditions, facts: Facts) -> Hashable | None:
    purse = _purse(facts)
    return None if purse is None else purse.group(facts.kind, _asked(conditions), child=conditions.child)


def _asks(task: Task) -> Hashable | None:
    return asked_by(task)


def _book(conditions: Conditions, facts: Facts) -> None:
    """A task that goes to ready/ has its reservation from then on."""
    purse = _purse(facts)
    if purse is not None:
        purse.reserve(facts.kind, _asked(conditions))


def _unbook(conditions: Conditions, facts: Facts) -> None:
    """A task that makes way has no reservation any more."""
    purse = _purse(facts)
    if purse is not None:
        purse.release(facts.kind, _asked(conditions))


def _holds(conditions: Conditions, facts: Facts, other: Conditions, about: Facts) -> bool:
    """Whether both draw on one account, and what is reserved there is what the first one lacks."""
    purse = _purse(facts)
    if purse is None or any(short.for_good for short in purse.short(facts.kind, _asked(conditions))):
        return False
    mine, theirs = purse.accounts(facts.kind, _asked(conditions)), purse.accounts(about.kind, _asked(other))
    return not set(mine).isdisjoint(theirs)


def _kinds(purse: Any) -> frozenset[str]:
    return frozenset() if purse is None else drawing(purse.settings)


def _gather(known: Known) -> Purse | None:
    """The budgets of this moment; None where the settings name none."""
    if not known.settings.budgets:
        return None
    return Purse(known.settings, known.more.get(NAME) or Book(), known.now)


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    purse: Purse | None = held.type.more.get(NAME)
    if purse is not None and purse.closed:
        return "it goes on when a leader has counted that; `spool status` warns of what keeps one from it"
    if wait.behind:
        first = next((one.id for one in _first(held) if key_in(one.file) == wait.behind), wait.behind)
        return f"it goes on once task {first} has had its turn; or `spool budget raise`"
    raised = (
        "`spool budget raise`, or a smaller `budget` of the task" if wait.until is None else "`spool budget raise`"
    )
    return raised if wait.until is None else f"time; or {raised}"


def _detail(held: Held, wait: Wait) -> str:
    """How many tasks of its lane come before it."""
    return f"before it in its lane: {amount(held.ahead, 'task')}" if held.ahead else ""


def _first(held: Held) -> tuple[First, ...]:
    purse: Purse | None = held.type.more.get(NAME)
    return () if purse is None else purse.book.first


GATE = TaskGate(
    NAME,
    "each budget that the task draws on has enough left for its next attempt",
    frozenset({Wake.STEP, Wake.TIME}),
    _change,
    judge,
    detail=_detail,
    tasks=Tasks.DRAWING,
    gather=_gather,
    asks=_asks,
    group=_group,
    kinds=_kinds,
    book=_book,
    unbook=_unbook,
    holds=_holds,
)


# Budgets: what those that may run have reserved, and which budget has too little left for one more.
# Law: values only. What was spent comes from the records of ended attempts (see `budget_usage`), and what is reserved
# from the tasks that are ready, claimed, in doubt, or ended without their record having been read.


DAY_S = 86_400
_NONE = Tally()


@dataclass(frozen=True, slots=True)
class Short:
    """An account that has too little left. name: of the amount; limit, used (spent or reserved), spent and need: in
    millionths; need is None where nobody knows what the task may come to. for_good: nothing that is reserved now can
    change that.
    """

    account: Account
    name: str
    limit: int
    used: int
    spent: int
    need: int | None
    for_good: bool


@dataclass(frozen=True, slots=True)
class First:
    """The first task of a queue that a budget keeps waiting. file: its name in waiting/; child: whether another task
    submitted it.
    """

    file: str
    id: str
    kind: str
    asked: Asked
    child: bool = False


@dataclass(slots=True)
class Book:
    """What a leader knows of all budgets. reserved: by account and name of the amount, in millionths, of the attempts
    that may run; closed: why nothing may start that draws on a budget, '' if it may; held: the accounts that keep
    tasks waiting, each with the files of the first tasks of their queues, the most urgent one in front. first: for
    `explain`, what is known of those.
    """

    sums: Sums = field(default_factory=Sums)
    reserved: dict[Account, dict[str, int]] = field(default_factory=dict)
    closed: str = ""
    held: dict[Account, tuple[str, ...]] = field(default_factory=dict)
    first: tuple[First, ...] = ()

    def waits(self, account: Account) -> str | None:
        """The id of the most urgent task that an account keeps waiting; None for none."""
        name = parse_task(next(iter(self.held.get(account, ())), ""))
        return None if name is None else name.id


@dataclass(frozen=True, slots=True)
class Purse:
    """All budgets at one moment. now: s since 1970, by the pool's clock."""

    settings: Settings
    book: Book
    now: float

    @property
    def closed(self) -> str:
        """Why nothing may start that draws on a budget, '' if it may."""
        return self.book.closed

    def accounts(self, kind: str, asked: Asked) -> list[Account]:
        """The accounts that an attempt draws on if it starts now."""
        return accounts_of(self.settings, kind, asked, day_of(self.now))

    def tomorrow(self) -> float:
        """When (s since 1970) the next day begins."""
        return (self.now // DAY_S + 1) * DAY_S

    def group(self, kind: str, asked: Asked, *, child: bool = False) -> Hashable | None:
        """The key of the tasks that wait for the same accounts; None for a task that draws on none.

        child: a task below another one stands behind those alone that want about as much, within a factor of two: who
        waits for what the task above it has reserved would keep it back for ever. So there are few keys, whatever
        tasks ask for.
        """
        accounts = accounts_of(self.settings, kind, asked, "")
        if not accounts:
            return None
        found: Hashable = tuple(accounts)
        if any(self.settings.budgets[name].unknown == "refuse" for name, _ in accounts):
            found = found, kind, tuple(name for name, _ in asked.own)  # one may be known, another not
        return (found, max((amount.bit_length() for _, amount in asked.own), default=0)) if child else found

    def reserve(self, kind: str, asked: Asked) -> None:
        """Count one more attempt that may run."""
        self._count(kind, asked, 1)

    def release(self, kind: str, asked: Asked) -> None:
        """Count one less: it was counted, and waits again."""
        self._count(kind, asked, -1)

    def _count(self, kind: str, asked: Asked, attempts: int) -> None:
        for account in self.accounts(kind, asked):
            mine = self.book.reserved.setdefault(account, {})
            for name in Amounts.model_fields:
                more = attempts * (self.book.sums.reserve(kind, asked, name) or 0)
                mine[name] = max(0, plus(mine.get(name, 0), more, MOST_MICROS))

    def reserve_all(self, running: Iterable[tuple[str, Asked]]) -> None:
        """Count the attempts that may run, by type, from nothing."""
        self.book.reserved.clear()
        for kind, asked in running:
            self.reserve(kind, asked)

    def _spent(self, account: Account) -> Mapping[str, int]:
        return self.book.sums.tallies.get(account, _NONE).spent

    def short(self, kind: str, asked: Asked) -> Iterator[Short]:
        """Each limit that one more attempt does not fit into."""
        for account in self.accounts(kind, asked):
            budget, sums = self.settings.budgets[account[0]], self.book.sums
            reserved = self.book.reserved.get(account, {})
            for name, most in budget.given.items():
                limit, spent = micros(most), self._spent(account).get(name, 0)
                need = sums.reserve(kind, asked, name)
                used = spent + reserved.get(name, 0)
                if need is None and budget.unknown == "refuse":
                    yield Short(account, name, limit, used, spent, None, for_good=True)
                elif not _fits(used, need or 0, limit):
                    yield Short(account, name, limit, used, spent, need or 0, not _fits(spent, need or 0, limit))

    def open(self, account: Account) -> bool:
        """Whether anything is left of each limit of an account."""
        given = self.settings.budgets[account[0]].given
        spent, reserved = self._spent(account), self.book.reserved.get(account, {})
        return all(spent.get(n, 0) + reserved.get(n, 0) < micros(amount) for n, amount in given.items())


def _fits(used: int, need: int, limit: int) -> bool:
    """Whether the need fits into what is left; nothing fits where nothing is left."""
    return used < limit and used + need <= limit


# Budgets in the leader's snapshot: written by the leader, read by `spool budget` and `spool explain`.
# Law: for people and programs. What a reader makes of it, it only shows.


# So many periods of a budget are shown, those that spent last; and so many of the tasks that one keeps waiting.
SHOWN = 50
QUEUES_SHOWN = 20
NO_NEWS = "no leader says just now what the budgets have spent"


def picture_of(purse: Purse) -> dict[str, Any]:
    """The numbers of all budgets, by name."""
    return {name: _budget(purse, name, own) for name, own in sorted(purse.settings.budgets.items())}


def _budget(purse: Purse, name: str, own: BudgetSettings) -> dict[str, Any]:
    book = purse.book
    mine = [account for account in book.sums.tallies if account[0] == name and account[1].startswith(own.per)]
    mine += sorted(account for account in {*book.reserved, *book.held} if account[0] == name and account not in mine)
    now = {"total": "total", "day": f"day:{day_of(purse.now)}"}.get(own.per)
    if now is not None and (name, now) not in mine:
        mine.append((name, now))
    usual = {
        kind: amounts({n: round(average) for n, (_, average) in found.items()})
        for kind, found in sorted(book.sums.usual.items())
    }
    said = {"per": own.per, "over": own.over, "unknown": own.unknown, "limits": own.given, "usual": usual}
    shown = [_period(purse, own, account) for account in mine[: -SHOWN - 1 : -1]]
    return {**said, "closed": book.closed, "periods": shown, "more": len(mine) - len(shown)}


def _period(purse: Purse, own: BudgetSettings, account: Account) -> dict[str, Any]:
    book = purse.book
    tally, reserved, held = (
        book.sums.tallies.get(account, Tally()),
        book.reserved.get(account, {}),
        book.held.get(account),
    )
    left = {
        name: micros(amount) - tally.spent.get(name, 0) - reserved.get(name, 0) for name, amount in own.given.items()
    }
    return {
        "period": account[1],
        "spent": _all(tally.spent),
        "reserved": _all(reserved),
        "left": amounts(left),
        "attempts": tally.attempts,
        "unknown": dict(tally.unknown),
        "waits": book.waits(account),
        **({"first": held[:QUEUES_SHOWN]} if held else {}),
    }


def _all(sums: Mapping[str, int]) -> dict[str, float]:
    return amounts({name: sums.get(name, 0) for name in Amounts.model_fields})


def heads(conditions: Conditions, kind: str, more: Mapping[str, Any]) -> list[str]:
    """The files of the first tasks that wait for the budgets of this one; of as many as a snapshot shows."""
    purse: Purse | None = more.get(NAME)
    if purse is None:
        return []
    return sorted(f for account in purse.accounts(kind, _asked(conditions)) for f in purse.book.held.get(account, ()))


def book_seen(gates: Mapping[str, Any], first: Iterable[First] = ()) -> Book:
    """What a snapshot says of all budgets, as far as it can be read. gates: the part of that name; first: what the
    reader knows of the tasks that they keep waiting.
    """
    found = gates.get("budget")
    if not isinstance(found, dict):
        return Book(closed=NO_NEWS)
    book = Book(first=tuple(first))
    try:
        for name, said in found.items():
            book.closed = said["closed"]
            for kind, usual in said["usual"].items():
                book.sums.usual[kind] = {n: (1, float(micros(amount))) for n, amount in usual.items()}
            for one in said["periods"]:
                account = (name, one["period"])
                spent, reserved = one["spent"], one["reserved"]
                book.sums.tallies[account] = Tally({n: micros(a) for n, a in spent.items()}, clamped(one["attempts"]))
                book.reserved[account] = {n: micros(a) for n, a in reserved.items()}
                book.held[account] = tuple(file for file in one.get("first", ()) if is_task(file))
    except (KeyError, TypeError, AttributeError, ValueError):
        return Book(closed=NO_NEWS)
    return book
