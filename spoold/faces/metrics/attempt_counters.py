"""The journals since a server began, as counters and histograms.

Law: only what was seen from its beginning is measured. A wait is between two machines' clocks, so each stamp is
corrected by how far its writer says that its clock is ahead; a run is what its worker measured. What is remembered of
tasks that have not ended is bounded, and a wait whose beginning is not known is counted and not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spoold.faces.metrics import exposition as f
from spoold.faces.metrics.exposition import Histogram, Samples
from spoold.protocol.amount import is_amount
from spoold.protocol.timestamps import moment

if TYPE_CHECKING:
    from spoold.client.spool.metrics_source import Figures
    from spoold.protocol.event import Event

# So many admitted tasks that have not started, and so many started ones, are remembered.
REMEMBERED = 100_000
# A histogram has 15 series a type.
TYPES_MOST = 50
RESULTS = ("completed", "failed", "cancelled", "skipped")
_UNKNOWN = "+unknown"


class Attempts:
    """What one server has seen of attempts so far."""

    def __init__(self) -> None:
        self._finished = dict.fromkeys(RESULTS, 0)
        self._waits: dict[str, Histogram] = {}
        self._runs: dict[str, Histogram] = {}
        self._unseen = 0
        self._admitted: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._types: dict[str, str] = {}
        self._ahead: dict[str, float] = {}

    def begin(self, figures: Figures) -> None:
        """Take over the types of what runs now, as the heartbeats say: its starts lie before the first event."""
        self._see_clocks(figures)
        for beat in figures.beats.values():
            for run in beat.running:
                _remember(self._types, run.id, run.type)

    def take(self, events: Iterable[Event], figures: Figures) -> None:
        """Count new events, in the order of their stamps."""
        self._see_clocks(figures)
        for event in events:
            if event.task is not None:
                self._take(event, event.task, event.detail if isinstance(event.detail, dict) else {})

    def samples(self) -> Samples:
        """Return what was counted."""
        return {
            f.FINISHED: {(result,): count for result, count in self._finished.items()},
            f.WAIT: {(kind,): found for kind, found in self._waits.items()},
            f.WAIT_UNSEEN: {(): self._unseen},
            f.RAN: {(kind,): found for kind, found in self._runs.items()},
        }

    def _see_clocks(self, figures: Figures) -> None:
        self._ahead = {node: beat.clock_ahead_s or 0.0 for node, beat in figures.beats.items()}

    def _take(self, event: Event, task: str, detail: dict[str, Any]) -> None:
        at = moment(event.at)
        pool_at = None if at is None else at - self._ahead.get(event.writer, 0.0)
        if event.event == "ADMITTED" and pool_at is not None:
            _remember(self._admitted, task, pool_at)
            self._waited(task)  # its start may have been read first: each writer appends when it likes
        elif event.event == "STARTED":
            kind = detail.get("type")
            _remember(self._types, task, kind if isinstance(kind, str) else _UNKNOWN)
            if event.attempt == 1 and pool_at is not None:
                _remember(self._started, task, pool_at)
                self._waited(task)
        elif event.event in ("COMPLETED", "FAILED", "SKIPPED", "RETURNED"):
            self._ran(task, detail.get("duration_s"))
            self._unseen += self._started.pop(task, None) is not None
            if event.event != "RETURNED":
                self._admitted.pop(task, None)  # one that never started
                self._finished[_result(event.event, detail.get("code"))] += 1

    def _waited(self, task: str) -> None:
        if task in self._admitted and task in self._started:
            wait_s = round(self._started.pop(task) - self._admitted.pop(task), 3)
            _histogram(self._waits, self._types.get(task, _UNKNOWN)).add(max(0.0, wait_s))

    def _ran(self, task: str, duration_s: object) -> None:
        kind = self._types.pop(task, _UNKNOWN)
        if isinstance(duration_s, int | float) and is_amount(duration_s):
            _histogram(self._runs, kind).add(duration_s)


def _result(event: str, code: object) -> str:
    if event == "FAILED":
        return "cancelled" if code == "CANCELLED" else "failed"
    return event.lower()


def _histogram(found: dict[str, Histogram], kind: str) -> Histogram:
    kind = kind if kind in found or len(found) < TYPES_MOST else f.OTHER
    return found.setdefault(kind, Histogram())


def _remember(memory: dict[str, Any], task: str, value: Any) -> None:
    memory[task] = value
    if len(memory) > REMEMBERED:
        del memory[next(iter(memory))]  # the one that has been there longest
