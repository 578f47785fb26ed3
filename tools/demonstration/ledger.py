"""The timeline: what each attempt of each task was, told by the events that masters and workers wrote down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from rich.table import Table

from spoold.protocol.event import Event
from tools.demonstration.cluster import laptop_of
from tools.demonstration.dag import REPORT

ENDS = ("COMPLETED", "FAILED", "RETURNED")


@dataclass(slots=True)
class Attempt:
    """One attempt; times in seconds since the epoch. outcome '' means that nobody wrote down how it ended."""

    task: str
    type: str
    number: int
    worker: str
    began: float
    ended: float | None = None
    outcome: str = ""

    @property
    def duration_s(self) -> float:
        """How long it ran, in seconds; 0 if nobody knows."""
        return 0.0 if self.ended is None else max(0.0, self.ended - self.began)


def read_attempts(events: Iterable[Event]) -> list[Attempt]:
    """All attempts that were started, in the order of their starts."""
    found: dict[tuple[str | None, int | None], Attempt] = {}
    events = list(events)
    for event in events:
        if event.event == "STARTED" and event.task is not None and event.attempt is not None:
            kind = str(detail_of(event).get("type", ""))
            found[event.task, event.attempt] = Attempt(event.task, kind, event.attempt, event.writer, _seconds(event))
    for event in events:
        attempt = found.get((event.task, event.attempt))
        if attempt is not None and event.event in ENDS:
            attempt.ended = _seconds(event)
            attempt.outcome = str(detail_of(event).get("code") or event.event)
    return sorted(found.values(), key=lambda attempt: (attempt.began, attempt.task))


def detail_of(event: Event) -> dict[str, Any]:
    """What an event says beside its fields."""
    return event.detail if isinstance(event.detail, dict) else {}


def timeline(attempts: list[Attempt]) -> Table:
    """The attempts of every task that needed more than one, and of the report; one row for each type of the rest."""
    again = {attempt.task for attempt in attempts if attempt.number > 1}
    full = [attempt for attempt in attempts if attempt.task in again or attempt.type == REPORT]
    rest = [attempt for attempt in attempts if attempt not in full]
    zero = min((attempt.began for attempt in attempts), default=0.0)
    table = Table(title="Timeline of attempts", title_justify="left", box=None, pad_edge=False)
    for heading in ("task", "attempt", "laptop", "began", "took", "outcome"):
        table.add_column(heading, justify="right" if heading in ("attempt", "began", "took") else "left")
    for kind in sorted({attempt.type for attempt in rest}):
        table.add_row(*_summary([attempt for attempt in rest if attempt.type == kind], zero))
    for attempt in full:
        began = f"{attempt.began - zero:.1f} s"
        took = f"{attempt.duration_s:.2f} s"
        who = laptop_of(attempt.worker)
        table.add_row(attempt.task, str(attempt.number), who, began, took, _words(attempt.outcome))
    return table


def _summary(attempts: list[Attempt], zero: float) -> tuple[str, ...]:
    """One row for many attempts that need no story."""
    times = [attempt.duration_s for attempt in attempts]
    laptops = Counter(laptop_of(attempt.worker) for attempt in attempts)
    who = ", ".join(f"{laptop} {count}" if len(attempts) > 1 else laptop for laptop, count in sorted(laptops.items()))
    began = f"{attempts[0].began - zero:.1f} s"
    took = f"{'median ' if len(times) > 1 else ''}{median(times):.2f} s"
    outcomes = ", ".join(sorted({_words(attempt.outcome) for attempt in attempts}))
    name = f"{attempts[0].type} × {len(attempts)}" if len(attempts) > 1 else attempts[0].task
    most = f", longest {max(times):.2f} s" if len(times) > 1 else ""
    return name, "1", who, began, took, outcomes + most


def _words(outcome: str) -> str:
    return outcome.lower().replace("_", " ") or "not written down"


def _seconds(event: Event) -> float:
    return datetime.fromisoformat(event.at).timestamp()
