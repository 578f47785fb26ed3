"""The book of locks as a snapshot shows it, so that `spool explain` asks the gate that the leader asks.

Law: what is not understood is left out: a later release may say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spoold.protocol.name_parts import is_task, key_in
from spoold.rules.locks.book import Book
from spoold.rules.locks.demand import Demand
from spoold.rules.locks.turns import Waiter, turn_of

# What a snapshot says of a holder that has waited for others for long.
LONG = "long"


def book_seen(gates: Mapping[str, Any]) -> Book | None:
    """The book of a snapshot's `gates`; None if it says nothing of locks."""
    seen = gates.get("locks")
    if not isinstance(seen, dict):
        return None
    book = Book()
    for row in _rows(seen, "holders"):
        if isinstance(holder := row.get("key"), str):
            book.held[holder] = _demand(row) if row.get("known") else None
            book.told[holder] = told(row)
            book.parents |= {holder} if row.get("waits") else frozenset()
            book.idle |= {holder} if row.get("waits") == LONG else frozenset()
    for row in _rows(seen, "waiters"):
        file = row.get("file")
        if isinstance(file, str) and is_task(file) and (demand := _demand(row)):
            book.line.join(key_in(file), Waiter(turn_of(file), demand, str(row.get("lane", ""))))
    return book


def locks_seen(gates: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot's `gates.locks` with all its parts, and with words: `locks`, and `told` of who holds."""
    seen = gates.get("locks")
    seen = seen if isinstance(seen, dict) else {}
    holders = [{**row, "told": told(row), "locks": _words(row)} for row in _rows(seen, "holders")]
    named = {row.get("key"): row["told"] for row in holders}
    named[""] = "nobody: it lacks something else, which later tasks have"
    waiters = [
        {**row, "locks": _words(row), "told": named.get(row.get("behind"), f"task {row.get('behind')}")}
        for row in _rows(seen, "waiters")
    ]
    return {"held": 0, "waiting": 0, **seen, "holders": holders, "waiters": waiters}


def told(row: Mapping[str, Any]) -> str:
    """A holder in words: `task x on laptop1 since …`, `the reservation of ada@desk`."""
    since = f" since {row['since']}" if row.get("since") else ""
    if "reservation" in row:
        by = f" of {row['by']}" if row.get("by") else ""
        why = f": {row['reason']}" if row.get("reason") else ""
        return f"reservation {row['reservation']}{by}{since}{why}"
    where = f" on {row['worker']}" if row.get("worker") else f" ({row.get('state', 'its place is in doubt')})"
    return f"task {row.get('task', row.get('key', ''))}{where}{since}"


def _words(row: Mapping[str, Any]) -> str:
    return "not known yet" if row.get("known") is False else _demand(row).told()


def _rows(seen: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    rows = seen.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _demand(row: Mapping[str, Any]) -> Demand:
    write, read = (tuple(map(str, row.get(kind) or ())) for kind in ("write", "read"))
    return Demand(write, read)
