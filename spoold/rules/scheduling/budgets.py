"""Budgets: what those that may run have reserved, and which budget has too little left for one more.

Law: values only. What was spent comes from the records of ended attempts (see `spending`), and what is reserved from
the tasks that are ready, claimed, in doubt, or ended without their record having been read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spoold.protocol.quantity import plus
from spoold.protocol.settings import Amounts, Settings
from spoold.rules.scheduling.spending import MOST_MICROS, Account, Asked, Sums, Tally, accounts_of, day_of, micros

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


@dataclass(slots=True)
class Book:
    """What a leader knows of all budgets. reserved: by account and name of the amount, in millionths, of the attempts
    that may run; closed: why nothing may start that draws on a budget, '' if it may; held: the accounts that keep
    tasks waiting, each with the id of the most urgent one.
    """

    sums: Sums = field(default_factory=Sums)
    reserved: dict[Account, dict[str, int]] = field(default_factory=dict)
    closed: str = ""
    held: dict[Account, str] = field(default_factory=dict)


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
            for name, amount in budget.given.items():
                limit, spent = micros(amount), self._spent(account).get(name, 0)
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
