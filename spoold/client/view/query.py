"""Which tasks are meant, in which order; and how many there are of each kind.

Law: pure. Counts are exact: of everything, not of a page. The counts of one facet are of the tasks that fit all other
facets, so that each shows what choosing it would give.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from spoold.client.view.card import Card, Row
from spoold.protocol import codec
from spoold.protocol.errors import BadFile

FACETS = ("state", "type", "batch", "worker", "code")
FACET_MOST = 50
LIMIT = 100


@dataclass(frozen=True, slots=True)
class Query:
    """Tasks fit whose words are among the given ones, each; none given: any. text: stands in the id or another word.

    sort: a field of SORTS, with '-' before it from the highest down. archived: also those in the archive. admitted:
    after the first of these moments (s since 1970), up to the second; one that is not admitted yet is later than all.
    """

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    text: str = ""
    sort: str = "-since"
    archived: bool = True
    admitted: tuple[float, float] | None = None

    def wanted(self) -> tuple[frozenset[str], ...]:
        """The words that are asked for, facet by facet."""
        return tuple(map(frozenset, (self.states, self.types, self.batches, self.workers, self.codes)))


@dataclass(frozen=True, slots=True)
class Found:
    """One page. matches: how many tasks fit, on all pages; total: how many there are; cursor: of the next page, ''
    where there is none; facets: by facet, then by word, how many tasks have it, the most frequent first.
    """

    cards: list[Card]
    matches: int
    total: int
    cursor: str
    facets: dict[str, dict[str, int]] = field(default_factory=dict)


SORTS: dict[str, Callable[[Card], Any]] = {
    "since": lambda card: card.since or 0.0,
    "admitted": lambda card: card.admitted or 0.0,
    "id": lambda card: card.id.lower(),
    "state": lambda card: card.state,
    "type": lambda card: card.type,
    "batch": lambda card: card.batch,
    "worker": lambda card: card.worker,
    "code": lambda card: card.code,
    "attempt": lambda card: card.attempt,
    "priority": lambda card: card.priority,
}


def check(query: Query) -> None:
    """Errors: BadFile for a sort that there is not."""
    if query.sort.removeprefix("-") not in SORTS:
        raise BadFile("sort", "", f"{query.sort!r} is no order.", f"use one of {', '.join(SORTS)}.")


def fitting(cards: Mapping[str, Card], rows: Iterable[Row], query: Query) -> list[tuple[str, Card]]:
    """Return all that fit, with their keys. rows: all that the cards have."""
    wanted, text = query.wanted(), query.text.casefold()
    asked = [(number, words) for number, words in enumerate(wanted) if words]
    pairs: Iterable[tuple[str, Card]] = cards.items()
    if not query.archived:
        pairs = (pair for pair in pairs if not pair[1].archived)
    if len(asked) == 1 and asked[0][0] == 0:  # by state alone, the most frequent question
        states = asked[0][1]
        pairs = (pair for pair in pairs if pair[1].state in states)
    elif asked:
        pairs = (pair for pair in pairs if _fits(pair[1].row, asked))
    if query.admitted is not None:
        low, high = query.admitted
        pairs = (pair for pair in pairs if low < (math.inf if (at := pair[1].admitted) is None else at) <= high)
    if text:
        said = {row for row in rows if any(text in word.casefold() for word in row)}
        pairs = (pair for pair in pairs if text in pair[0] or (said and pair[1].row in said))
    return list(pairs)


def _fits(row: Row, asked: list[tuple[int, frozenset[str]]]) -> bool:
    return all(row[number] in words for number, words in asked)


def page(pairs: list[tuple[str, Card]], query: Query, cursor: str, limit: int) -> tuple[list[Card], str]:
    """Return the page after the cursor, and the cursor of the next. Errors: BadFile for an unknown cursor or sort."""
    check(query)
    of, down = SORTS[query.sort.removeprefix("-")], query.sort.startswith("-")
    best = heapq.nlargest if down else heapq.nsmallest
    values = [of(card) for _, card in pairs]
    if cursor:
        pairs, values = _behind(pairs, values, cursor, down=down)
    # Only what may be on the page is placed by its name too: a hundred thousand pairs cost more than they tell.
    edge = best(limit + 1, values)[-1:]
    near = (
        (value, name, card)
        for value, (name, card) in zip(values, pairs, strict=True)
        if value == edge[0] or (value > edge[0]) == down
    )
    some = best(limit + 1, near)
    more = orjson.dumps(some[limit - 1][:2]).decode() if len(some) > limit else ""
    return [card for _, _, card in some[:limit]], more


def facets(rows: Mapping[Row, int], query: Query) -> dict[str, dict[str, int]]:
    """Return the counts of all facets, from how many tasks have the same words."""
    wanted = query.wanted()
    counted: list[Counter[str]] = [Counter() for _ in FACETS]
    for row, number in rows.items():
        misses = [place for place, words in enumerate(wanted) if words and row[place] not in words]
        if not misses:
            for place, word in enumerate(row):
                counted[place][word] += number
        elif len(misses) == 1:
            counted[misses[0]][row[misses[0]]] += number
    return {name: _most(counts, words) for name, counts, words in zip(FACETS, counted, wanted, strict=True)}


def _most(counts: Counter[str], asked: frozenset[str]) -> dict[str, int]:
    """The most frequent words, and those that are asked for even where they have no task; '' is no word."""
    counts.pop("", None)
    shown = dict(counts.most_common(FACET_MOST))
    return shown | {word: counts.get(word, 0) for word in asked if word not in shown}


def rows_of(pairs: Iterable[tuple[str, Card]]) -> Counter[Row]:
    """Return how many of these have the same words."""
    return Counter(card.row for _, card in pairs)


def without_facets(query: Query) -> Query:
    """The same question with its text alone: what facets count begins there."""
    return replace(query, states=(), types=(), batches=(), workers=(), codes=())


def _behind(
    pairs: list[tuple[str, Card]], values: list[Any], cursor: str, *, down: bool
) -> tuple[list[tuple[str, Card]], list[Any]]:
    """What comes after the cursor, with its values. Errors: BadFile for a cursor of another list."""
    at, last = _begin(cursor)
    try:
        rest = [
            (pair, value)
            for pair, value in zip(pairs, values, strict=True)
            if pair[0] != last and ((pair[0] < last) == down if value == at else (value < at) == down)
        ]
    except TypeError:
        raise _no_cursor(cursor) from None
    return [pair for pair, _ in rest], [value for _, value in rest]


def _begin(cursor: str) -> tuple[Any, str]:
    with suppress(BadFile):
        match codec.load_text(cursor, "cursor"):
            case [value, str(name)] if isinstance(value, str | int | float):
                return value, name
    raise _no_cursor(cursor)


def _no_cursor(cursor: str) -> BadFile:
    return BadFile("cursor", "", f"is not from this list: {cursor[:40]!r}.", "begin without one.")
