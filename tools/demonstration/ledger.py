"""The timeline: what each attempt of each task was.

Law: how a task ended is told by its result; only of the attempts before that do the events tell, and those that a
killed worker had not written down yet are gone with it. So what is unknown is shown as unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from rich.table import Table

from spoold.protocol.event import Event
from spoold.protocol.result import Result, Status
from tools.demonstration.cluster import laptop_of
from tools.demonstration.dag import REPORT


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt; began in seconds since 1970, duration_s in seconds, both None if nobody wrote them down."""

    task: str
    type: str
    number: int
    worker: str
    began: float | None
    duration_s: float | None
    outcome: str


def read_attempts(events: Iterable[Event], results: Iterable[Result]) -> list[Attempt]:
    """All attempts from all events and the results that count: by task, in the order in which the tasks began."""
    started: dict[tuple[str | None, int | None], Event] = {}
    returned: dict[tuple[str, int], Event] = {}
    for event in events:
        if event.event == "STARTED":
            started[event.task, event.attempt] = event
        elif event.event == "RETURNED" and event.task is not None and event.attempt is not None:
            returned[event.task, event.attempt] = event
    ended = list(results)
    types = {result.task_id: result.type or "" for result in ended}
    found = [_ended(result) for result in ended]
    for (task, number), event in returned.items():
        found.append(_returned(task, types.get(task, ""), number, event, started.get((task, number))))
    first: dict[str, float] = {}
    for attempt in found:
        first[attempt.task] = min(first.get(attempt.task, float("inf")), attempt.began or float("inf"))
    return sorted(found, key=lambda attempt: (first[attempt.task], attempt.task, attempt.number))


def _ended(result: Result) -> Attempt:
    began = _seconds(result.started_at) if result.started_at else None
    outcome = "COMPLETED" if result.status is Status.SUCCESS else str(result.error.code if result.error else "FAILED")
    number, who = result.attempt, result.worker_id
    return Attempt(result.task_id, result.type or "", number, who, began, result.duration_s, outcome)


def _returned(task: str, kind: str, number: int, event: Event, start: Event | None) -> Attempt:
    """An attempt that was not the last; its worker wrote that down, or the master for a dead one."""
    detail = detail_of(event)
    began = _seconds(start.at) if start is not None else None
    took = detail.get("duration_s", _seconds(event.at) - began if began is not None else None)
    return Attempt(
        task, kind, number, str(detail.get("worker", event.writer)), began, took, str(detail.get("code", event.event))
    )


def detail_of(event: Event) -> dict[str, Any]:
    """What an event says beside its fields."""
    return event.detail if isinstance(event.detail, dict) else {}


def timeline(attempts: list[Attempt]) -> Table:
    """The attempts of every task that needed more than one, and of the report; one row for each type of the rest."""
    again = {attempt.task for attempt in attempts if attempt.number > 1}
    full = [attempt for attempt in attempts if attempt.task in again or attempt.type == REPORT]
    rest = [attempt for attempt in attempts if attempt not in full]
    zero = min((attempt.began for attempt in attempts if attempt.began is not None), default=0.0)
    table = Table(title="Timeline of attempts", title_justify="left", box=None, pad_edge=False)
    for heading in ("task", "attempt", "laptop", "began", "took", "outcome"):
        table.add_column(heading, justify="right" if heading in ("attempt", "began", "took") else "left")
    for kind in sorted({attempt.type for attempt in rest}):
        table.add_row(*_summary([attempt for attempt in rest if attempt.type == kind], zero))
    for attempt in full:
        began = "?" if attempt.began is None else f"{attempt.began - zero:.1f} s"
        took = "?" if attempt.duration_s is None else f"{attempt.duration_s:.2f} s"
        who = laptop_of(attempt.worker)
        table.add_row(attempt.task, str(attempt.number), who, began, took, _words(attempt.outcome))
    return table


def _summary(attempts: list[Attempt], zero: float) -> tuple[str, ...]:
    """One row for many attempts that need no story."""
    first, many = attempts[0], len(attempts) > 1
    times = [attempt.duration_s or 0.0 for attempt in attempts]
    laptops = Counter(laptop_of(attempt.worker) for attempt in attempts)
    who = ", ".join(f"{laptop} {count}" if many else laptop for laptop, count in sorted(laptops.items()))
    began = "?" if first.began is None else f"{first.began - zero:.1f} s"
    took = f"{'median ' if many else ''}{median(times):.2f} s"
    outcomes = ", ".join(sorted({_words(attempt.outcome) for attempt in attempts}))
    name = f"{first.type} ({len(attempts)} tasks)" if many else first.task
    return name, "1", who, began, took, outcomes + (f", longest {max(times):.2f} s" if many else "")


def _words(outcome: str) -> str:
    words = outcome.lower().replace("_", " ")
    return f"{words} (until it was noticed)" if outcome == "WORKER_DIED" else words


def _seconds(stamp: str) -> float:
    """Seconds since 1970 of a time as spools write it."""
    return datetime.fromisoformat(stamp).timestamp()
