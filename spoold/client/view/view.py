"""One view of a spool. See the package for how it is kept up to date.

Law: looks and never touches; answers come from memory, but those of `details`, and never wait for a look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from spoold.client.info import TaskInfo
from spoold.client.questions import Question
from spoold.client.view import query as queries
from spoold.client.view.answers import Answers
from spoold.client.view.card import Card
from spoold.client.view.counting import AgeRow, BatchRow, Run, ages_of, batches_of, failures_of, runs_of
from spoold.client.view.details import Details, LogPart
from spoold.client.view.following import Following
from spoold.client.view.journals import Noted
from spoold.client.view.query import Found, Query
from spoold.client.view.reasons import Reason, Seen, reasons_of
from spoold.pictures.scene import Scene
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import key
from spoold.protocol.snapshot import Snapshot
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.answers.task_history import Chapter
from spoold.store.store import Store
from spoold.system.host import Host

T = TypeVar("T")
# How long (s) what costs a walk over all tasks is good for.
COUNTED_S, REASONS_S = 1.0, 5.0


class View(Following):
    """Thread-safe. Call `look` again and again, after `pause_s`; a `Watch` does that."""

    def __init__(self, store: Store, host: Host, reaching: Callable[[], Any]) -> None:
        """reaching: turns an OSError into an error with advice. Reads nothing yet."""
        super().__init__(store, host)
        self._reaching = reaching
        self._answers = Answers(self._store.clock.monotonic)
        self._details = Details(store, host, self.card, self._returned)

    def _returned(self, task_id: str) -> dict[int, str]:
        return dict(self._table.returned.get(key(task_id), {}))

    @property
    def round_trips(self) -> int:
        """How many round trips the view has cost so far, as a share would count them."""
        return self._mount.spent + self._details.round_trips

    @property
    def picture(self) -> Snapshot | None:
        """The pool as `spool status --json` shows it; None before the first look."""
        return self._pictures.last

    def find(self, query: Query, *, cursor: str = "", limit: int = queries.LIMIT) -> Found:
        """Return a page of the tasks that fit. Errors: BadFile for an unknown cursor or sort."""
        queries.check(query)
        with self._lock:
            changes = self._table.changes
        asked = ("find", query, cursor, limit, changes)
        return self._answers.get(asked, float("inf"), lambda: self._find(query, cursor, limit))

    def _find(self, query: Query, cursor: str, limit: int) -> Found:
        with self._lock:
            fitting = queries.fitting(self._table.cards, self._table.rows, query)
            total = len(self._table.cards)
            if query.text or not query.archived or query.admitted is not None:
                asked = queries.without_facets(query)
                alike = queries.rows_of(queries.fitting(self._table.cards, self._table.rows, asked))
            else:
                alike = self._table.rows
            facets = queries.facets(alike, query)
        cards, more = queries.page(fitting, query, cursor, limit)
        return Found(cards, len(fitting), total, more, facets)

    def keys(self, query: Query) -> list[str]:
        """Return the ids of all tasks that fit, in alphabetical order."""
        with self._lock:
            return sorted(card.id for _, card in queries.fitting(self._table.cards, self._table.rows, query))

    def card(self, task_id: str) -> Card | None:
        """Return what is known of a task; None where it is not known."""
        return self._table.find(task_id)

    def counts(self) -> dict[str, int]:
        """Return how many tasks of the view are in each state."""
        with self._lock:
            return dict(self._table.counts())

    def running(self) -> list[Run]:
        """Return what runs, by worker, as the last beats tell."""
        self._quiet.want()
        picture = self.picture
        with self._lock:
            return runs_of(picture.nodes if picture is not None else (), self._table.cards, self._quiet.seconds())

    def batches(self) -> list[BatchRow]:
        """Return all batches, that with the newest task first."""
        return self._counted("batches", lambda: batches_of(self._table.cards.values(), self._table.rows))

    def ages(self) -> list[AgeRow]:
        """Return by type how many tasks wait or are ready, by the class of their age."""
        now = self._store.clock.wall()
        return self._counted("ages", lambda: ages_of(self._table.cards.values(), now))

    def failures(self, most: int = 50) -> list[Card]:
        """Return the tasks that failed last, and the drops that were rejected, the newest first."""
        return self._counted(f"failures {most}", lambda: failures_of(self._table.cards.values(), most))

    def _counted(self, what: str, count: Callable[[], T]) -> T:
        def work_out() -> T:
            with self._lock:
                return count()

        return self._answers.get((what,), COUNTED_S, work_out)

    def reasons(self) -> list[Reason]:
        """Return why tasks wait, the most frequent reason first; at most REASONS_S old. Errors: Unavailable."""
        picture = self.picture
        if picture is None:
            return []
        return self._answers.get(("reasons",), REASONS_S, lambda: self._reasons(picture))

    def _reasons(self, picture: Snapshot) -> list[Reason]:
        with self._reaching():
            asked = self._details.asked()
        with self._lock:
            queued = [
                (name, card) for name, card in self._table.cards.items() if card.state in (State.WAITING, State.READY)
            ]
            batches: dict[str, bool] = {}
            for state, _, batch, _, _ in self._table.rows:
                if batch:
                    batches[key(batch)] = batches.get(key(batch), False) or state not in ENDED
        return reasons_of(
            self._details.store, Seen(queued, self._state, self._filling.conditions, batches), picture, asked
        )

    def _state(self, task_key: str) -> str:
        card = self._table.cards.get(task_key)
        return card.state if card is not None else ""

    def events(self, after: int = 0, *, task: str = "", most: int = 200) -> list[Noted]:
        """Return the last events, oldest first: those with a higher number, of one task, or of all."""
        with self._lock:
            return self._journals.last(after, task, most)

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that stand. Errors: Unavailable."""
        with self._reaching():
            return self._details.questions()

    def info(self, task_id: str) -> TaskInfo:
        """As `spool show`. Errors: NotFound, Unavailable."""
        with self._reaching():
            return self._details.info(task_id)

    def explain(self, task_id: str) -> Explanation:
        """As `spool explain`. Errors: NotFound, Unavailable."""
        with self._reaching():
            return self._details.explain(task_id)

    def history(self, task_id: str) -> list[Chapter]:
        """As `spool history`. Errors: NotFound, Unavailable."""
        with self._reaching():
            return self._details.history(task_id)

    def scene(self, batch: str | None) -> Scene:
        """The tasks of a batch, or all, for a picture. Errors: NotFound, Unavailable."""
        with self._reaching():
            return self._details.scene(batch, self._of_batch(batch) if batch is not None and self.complete else None)

    def _of_batch(self, batch: str) -> Callable[[], list[Card]]:
        def cards() -> list[Card]:
            with self._lock:
                return [card for card in self._table.cards.values() if key(card.batch) == key(batch)]

        return cards

    def log(self, task_id: str, *, attempt: int | None = None, offset: int = 0, most: int = 1 << 16) -> LogPart:
        """Return some bytes of a log: of the last attempt, or the named one. offset: below 0 it counts from the end.

        Errors: NotFound, Unavailable.
        """
        with self._reaching():
            return self._details.log(task_id, attempt, offset, most)

    def logs(self, task_id: str) -> list[int]:
        """Return the attempts that have a log. Errors: Unavailable."""
        with self._reaching():
            return self._details.attempts(task_id)
