"""Budgets in the leader's snapshot: written by the leader, read by `spool budget` and `spool explain`.

Law: for people and programs. What a reader makes of it, it only shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.protocol.quantity import clamped
from spoold.protocol.settings import Amounts, BudgetSettings
from spoold.rules.scheduling.budgets import Book, Purse
from spoold.rules.scheduling.spending import Account, Tally, amounts, day_of, micros

# So many periods of a budget are shown, those that spent last.
SHOWN = 50
NO_NEWS = "no leader has said yet what the budgets have spent"


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
    tally, reserved = purse.book.sums.tallies.get(account, Tally()), purse.book.reserved.get(account, {})
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
        "waits": purse.book.held.get(account),
    }


def _all(sums: Mapping[str, int]) -> dict[str, float]:
    return amounts({name: sums.get(name, 0) for name in Amounts.model_fields})


def book_seen(gates: Mapping[str, Any]) -> Book:
    """What a snapshot says of all budgets, as far as it can be read. gates: the part of that name."""
    found = gates.get("budget")
    if not isinstance(found, dict):
        return Book(closed=NO_NEWS)
    book = Book()
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
    except (KeyError, TypeError, AttributeError, ValueError):
        return Book(closed=NO_NEWS)
    return book
