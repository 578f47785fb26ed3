"""What a view counts: how long tasks wait by type, how far batches are, what failed last, what runs.

Law: pure.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spoold.client.view.card import Card, Row
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.snapshot import Node
from spoold.protocol.timestamps import moment
from spoold.rules.attempts.reported_figures import figures_in

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
