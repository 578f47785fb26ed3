"""Breakers in the leader's snapshot: written by the leader, read by `spool explain`, `spool ls` and `spool status`.

Law: for people and programs. What a reader makes of it, it only shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from spoold.rules.scheduling.breakers import Book, Row


def picture_of(book: Book) -> dict[str, Any]:
    """The numbers of all types that have failures in a row."""
    return {kind: _numbers(book, kind, row) for kind, row in sorted(book.rows.items())}


def _numbers(book: Book, kind: str, row: Row) -> dict[str, Any]:
    said: dict[str, Any] = {"failures": row.failures, "last": row.last, "until": None}
    if row.until is not None:
        said["until"] = (
            datetime.fromtimestamp(row.until, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    return {**said, "trying": book.trying[kind]} if kind in book.trying else said


def book_seen(gates: Mapping[str, Any]) -> Book:
    """The book that a snapshot shows; what cannot be read is left out."""
    book = Book()
    rows = gates.get("breaker")
    for kind, said in rows.items() if isinstance(rows, Mapping) else ():
        try:
            until = said["until"]
            moment = None if until is None else datetime.fromisoformat(until).timestamp()
            book.put(kind, Row(int(said["failures"]), moment, str(said.get("last", ""))))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
        if "trying" in said:
            book.trying[kind] = str(said["trying"])
    return book
