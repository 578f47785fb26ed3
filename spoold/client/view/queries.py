"""What a view selects and counts: which tasks are meant, in which order, how many there are of each kind; ages by
type, batches, failures, what runs; and why tasks wait, by the gates that the leader asks.

Law: looks and never touches; only the conditions of tasks are read. Counts are exact: of everything, not of a page.
The counts of one facet are of the tasks that fit all other facets, so that each shows what choosing it would give.
Tasks without conditions wait for what their lane waits for, so a lane is asked once, however many tasks it has. The
conditions of a task are in its file, which is read once; of tasks that were not read yet it is only said that they
have conditions. Backoffs are counted from the end of the attempt before, as its event tells it.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from spoold.client.read.gate_facts import Asked, Gates, rest_of
from spoold.client.view.cards import Card, Row
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, parse_task
from spoold.protocol.snapshot import Node, Snapshot
from spoold.protocol.timestamps import moment
from spoold.rules.attempts.reported_figures import figures_in
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent, parent_in
from spoold.rules.gates.gate import Pass, Verdict
from spoold.store.store import Store

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


# What a view counts: how long tasks wait by type, how far batches are, what failed last, what runs.


# The upper bounds (s) of the classes of age.
AGES = (60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, math.inf)
# Where the program of a task says in its progress what it is doing.
_SAYS = ("message", "status", "step", "text", "stage")


@dataclass(frozen=True, slots=True)
class AgeRow:
    """Of one type: how many tasks wait or are ready, by the class of their age (AGES), and together."""

    type: str
    counts: list[int]
    total: int


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch. counts: by state; first, last: when its first and its last task was admitted (s since 1970)."""

    batch: str
    counts: dict[str, int]
    total: int
    first: float | None
    last: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that runs, as its worker's last beat tells. card: None where the view has none yet.

    since: when it began (s since 1970); quiet_s: for how long neither its log has grown nor its report changed,
    None where that is not known; progress: its own report; tokens, cost_usd, message: what can be read in there.
    """

    card: Card | None
    id: str
    attempt: int
    type: str
    worker: str
    since: float | None
    quiet_s: float | None
    progress: Any
    tokens: float | None
    cost_usd: float | None
    message: str
    frozen_s: float
    lent: bool


def ages_of(cards: Iterable[Card], now: float) -> list[AgeRow]:
    """Return the ages by type, the type with the most tasks first."""
    found: dict[str, list[int]] = {}
    for card in cards:
        if card.state in (State.WAITING, State.READY):
            age_s = now - (card.admitted if card.admitted is not None else now)
            counts = found.setdefault(card.type, [0] * len(AGES))
            counts[bisect_right(AGES, age_s)] += 1
    rows = [AgeRow(kind, counts, sum(counts)) for kind, counts in found.items()]
    return sorted(rows, key=lambda row: (-row.total, row.type))


def batches_of(cards: Iterable[Card], rows: Mapping[Row, int]) -> list[BatchRow]:
    """Return all batches, that with the newest task first."""
    counts: dict[str, Counter[str]] = {}
    for (state, _, batch, _, _), number in rows.items():
        if batch:
            counts.setdefault(batch, Counter())[state] += number
    spans: dict[str, tuple[float, float]] = {}
    for card in cards:
        if card.batch and card.admitted is not None:
            first, last = spans.get(card.batch, (card.admitted, card.admitted))
            spans[card.batch] = min(first, card.admitted), max(last, card.admitted)
    found = [
        BatchRow(batch, dict(states), sum(states.values()), *spans.get(batch, (None, None)))
        for batch, states in counts.items()
    ]
    return sorted(found, key=lambda row: (-(row.last or 0.0), row.batch))


def failures_of(cards: Iterable[Card], most: int) -> list[Card]:
    """Return the tasks that failed last and the drops that were rejected, the newest first."""
    failed = (card for card in cards if card.state in (State.FAILED, State.REJECTED))
    return heapq.nlargest(most, failed, key=lambda card: (card.since or 0.0, card.id))


def runs_of(nodes: Iterable[Node], cards: Mapping[str, Card], quiet: Mapping[tuple[str, int], float]) -> list[Run]:
    """Return what runs, by worker. quiet: for how long (s) the log of an attempt has not grown."""
    return [_run(node.worker, task, cards, quiet) for node in nodes for task in node.tasks if isinstance(task, dict)]


def _run(worker: str, task: dict[str, Any], cards: Mapping[str, Card], quiet: Mapping[tuple[str, int], float]) -> Run:
    task_id, attempt = str(task.get("id", "")), task.get("attempt")
    attempt = attempt if isinstance(attempt, int) else 0
    card, progress = cards.get(key(task_id)), task.get("progress")
    figures = figures_in(progress)
    here = card is not None and card.state == State.CLAIMED and card.attempt == attempt
    since = moment(str(task.get("since") or ""))
    return Run(
        card=card,
        id=task_id,
        attempt=attempt,
        type=str(task.get("type") or "") or (card.type if card is not None else ""),
        worker=worker,
        since=since if since is not None else card.since if here and card is not None else None,
        quiet_s=quiet.get((key(task_id), attempt)),
        progress=progress,
        tokens=figures.tokens_used,
        cost_usd=figures.cost_usd,
        message=_message(progress),
        frozen_s=_real(task.get("frozen_s")),
        lent=task.get("lent") is True,
    )


def _message(progress: Any) -> str:
    if isinstance(progress, str):
        return progress
    if isinstance(progress, dict):
        return next((said for name in _SAYS if isinstance(said := progress.get(name), str) and said), "")
    return ""


def _real(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


# Why tasks wait, counted: by the gates that the leader asks, with the states that the view knows.


# One sentence for all tasks that the same gate holds for reasons of their own.
_OWN = {
    "dependencies": "waits for other tasks to complete",
    "after_any": "waits for other tasks to end",
    "after_failed": "waits to see whether other tasks fail",
    "after_batch": "waits for all tasks of a batch to end",
    "not_before": "its time has not come yet",
    "retry_delay": "rests before its next attempt",
    "hold": "is on hold",
    "approval": "waits for an approval",
    "locks": "waits for files or other things that it locks",
    "budget": "waits for a budget",
}
TURN = "nothing stands in its way: it waits for its turn"
READY = "ready: waits for a worker with a free slot"
NOT_READ = "has conditions that were not read yet"
RETURNED = "is about to be placed again"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why so many tasks wait. gate: the name of the gate, '' for none; query: finds these tasks, and perhaps others
    of the same types; None where nothing finds them.
    """

    text: str
    count: int
    gate: str
    query: Query | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a view has seen. queued: the tasks that wait or are ready, with their keys; state: of a task by its key,
    '' if there is none; conditions: of the tasks that were read, by key; batches: by key, whether a task of it is
    open.
    """

    queued: list[tuple[str, Card]]
    state: Callable[[str], str]
    conditions: Mapping[str, Conditions]
    batches: Mapping[str, bool]


def reasons_of(store: Store, seen: Seen, picture: Snapshot, asked: Asked) -> list[Reason]:
    """Return the reasons, the most frequent first."""
    judged = _Judge(store, seen, picture, asked)
    counts: Counter[tuple[str, str]] = Counter()
    kinds: dict[tuple[str, str], set[tuple[str, str]]] = {}
    alike: Counter[tuple[str, str, str]] = Counter()
    for name, card in seen.queued:
        if judged.waits_with_its_lane(name, card):
            alike[card.state, card.type, card.lane] += 1
        else:
            reason = judged.reason(name, card)
            counts[reason] += 1
            kinds.setdefault(reason, set()).add((card.state, card.type))
    for (state, kind, lane), number in alike.items():
        reason = judged.of_lane(lane, ready=state == State.READY)
        counts[reason] += number
        kinds.setdefault(reason, set()).add((state, kind))
    return [Reason(text, count, gate, _query(kinds[gate, text])) for (gate, text), count in counts.most_common()]


def _query(kinds: Iterable[tuple[str, str]]) -> Query:
    states = tuple(sorted({state for state, _ in kinds}, reverse=True))
    return Query(states=states, types=tuple(sorted({kind for _, kind in kinds if kind})))


class _Judge:
    """One look at all tasks that wait."""

    def __init__(self, store: Store, seen: Seen, picture: Snapshot, asked: Asked) -> None:
        self._now, self._seen, self._asked = store.clock.wall(), seen, asked
        self._gates = Gates(self._now, store.settings, asked, picture, self._parent)

    def waits_with_its_lane(self, name: str, card: Card) -> bool:
        """Whether the task has nothing to wait for that its lane has not: nearly all of a deep backlog have none."""
        if card.state == State.READY:
            return True
        return card.attempt == 1 and card.lane != "" and not card.conditional and name not in self._asked.about

    def reason(self, name: str, card: Card) -> tuple[str, str]:
        """The gate that speaks, and its words."""
        if not card.lane:
            return "", RETURNED
        if card.conditional and name not in self._seen.conditions:
            return "", NOT_READ
        conditions = self._seen.conditions.get(name, NO_CONDITIONS)
        token = parse_task(card.file) if card.attempt > 1 else None
        rest_s = rest_of(token, card.since, self._now) if token is not None else 0.0
        return _words(self._gates.of_waiting(card.lane, conditions, name, card.file, rest_s), TURN)

    def of_lane(self, lane: str, *, ready: bool) -> tuple[str, str]:
        """What the tasks of a lane wait for that have no conditions."""
        if ready:
            return _words(self._gates.of_lane(lane, ready=True), READY)
        return _words(self._gates.of_waiting(lane, NO_CONDITIONS), TURN)

    def _parent(self, wanted: str) -> Parent:
        batch = batch_in(wanted)
        if batch is not None:
            still = self._seen.batches.get(key(batch))
            return Parent.UNKNOWN if still is None else Parent.OPEN if still else Parent.COMPLETED
        state = self._seen.state(key(wanted))
        return parent_in(State(state)) if state else Parent.UNKNOWN


def _words(verdict: Verdict, otherwise: str) -> tuple[str, str]:
    return ("", otherwise) if isinstance(verdict, Pass) else (verdict.gate, _OWN.get(verdict.gate, verdict.reason))
