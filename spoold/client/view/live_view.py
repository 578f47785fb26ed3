"""View: one view of a spool; Watch: a thread that keeps it up to date; Details: what only a file tells, such as one
task, why it waits, its log, the scene of its batch. See the package for how a view is kept up to date.

Law: looks and never touches; answers come from memory, but those of `Details`, and never wait for a look. However
many ask, a file is read once for all who ask within its time. What the view knows of the place of a task saves a
search through all directories; a task that has moved on is searched for. A watch ends with its `with`, but for a look
that a silent share holds: the thread is a daemon, and keeps no program from ending.

Touches: threads.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from spoold.client.read import explanation, graph_data, histories
from spoold.client.read.attempt_logs import list_logs, work_of_task
from spoold.client.read.gate_facts import Asked, asked_now
from spoold.client.read.questions import Question, list_questions
from spoold.client.read.task_info import TaskInfo, describe, described
from spoold.client.view import queries
from spoold.client.view.cards import ENDED_STATES, Card
from spoold.client.view.queries import (
    AgeRow,
    BatchRow,
    Found,
    Query,
    Reason,
    Run,
    Seen,
    ages_of,
    batches_of,
    failures_of,
    reasons_of,
    runs_of,
)
from spoold.client.view.rate_limit import ANSWERS_BURST, ANSWERS_PER_S, Allowance, Answers, through
from spoold.client.view.refresh import Following, Noted
from spoold.pictures.picture_data import Scene
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import EndedName, key
from spoold.protocol.snapshot import Snapshot
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.answers.task_history import Chapter
from spoold.store.store import Store
from spoold.store.task_location import Located, locate, locate_many
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

    def work(self, info: TaskInfo) -> str:
        """What the work of a task's agent came to, with the end of its merge; '' for none. Errors: none."""
        return self._details.work(info)

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


# A thread that keeps a view up to date.


_END_S = 2.0


class Watch:
    """Use it in a `with`. alone: the program does little else, so what the view holds is kept out of the garbage
    collector's rounds once it is complete: there are hundreds of thousands of objects, and none of them is garbage.
    """

    def __init__(self, view: View, *, alone: bool = False) -> None:
        self._view, self._alone = view, alone
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spool-view", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_END_S)

    def wait(self, version: int, timeout_s: float) -> int:
        """Wait until the view has changed since this version; return its present one, also after the timeout."""
        return self._view.wait(version, timeout_s)

    def _run(self) -> None:
        while not self._over.is_set():
            self._view.look()
            if self._alone and self._view.complete:
                self._alone = False
                gc.freeze()
            self._over.wait(self._view.pause_s())


# What only a file tells: one task, why it waits, its log, the scene of its batch.


# How long (s) an answer is good for.
FRESH_S, LOG_S, SCENE_S, EXPLAINED_S, ASKED_S = 2.0, 1.0, 5.0, 3.0, 5.0


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some bytes of the log of one attempt: from `begin` to `end`, of `size`. ended: no more will come.

    worker: who ran it.
    """

    attempt: int
    worker: str
    begin: int
    end: int
    size: int
    data: bytes
    ended: bool


class Details:
    """Reads for a view. find: its card of a task; returned: who decided which earlier attempt."""

    def __init__(
        self,
        store: Store,
        host: Host,
        find: Callable[[str], Card | None],
        returned: Callable[[str], dict[int, str]],
    ) -> None:
        self._host, self._find, self._returned = host, find, returned
        self._store, self._mount = through(store)
        allowance = Allowance(self._mount, store.clock, ANSWERS_PER_S, ANSWERS_BURST)
        self._answers = Answers(store.clock.monotonic, allowance)

    @property
    def round_trips(self) -> int:
        """How many round trips all answers have cost so far."""
        return self._mount.spent

    def asked(self) -> Asked:
        """Return the requests that stand, for who counts reasons. Errors: OSError."""
        return self._answers.get(("asked",), ASKED_S, self._asked)

    def _asked(self) -> Asked:
        self._store.revisions.look()
        return asked_now(self._store)

    @property
    def store(self) -> Store:
        """The spool, with the settings that held when `asked` was answered last."""
        return self._store

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that stand. Errors: OSError."""
        return self._answers.get(("questions",), ASKED_S, lambda: list_questions(self._store))

    def info(self, task_id: str) -> TaskInfo:
        """As `spool show`. Errors: NotFound, OSError."""
        return self._answers.get(("info", key(task_id)), FRESH_S, lambda: self._info(task_id))

    def _info(self, task_id: str) -> TaskInfo:
        card = self._find(task_id)
        located = card.located() if card is not None else None
        if located is None:
            return describe(self._store, task_id)
        found = described(self._store, located, self._records(located))
        if found.task or located.state is State.REJECTED:
            return found
        # A file that cannot be read has most likely moved on since it was listed.
        try:
            return describe(self._store, task_id)
        except NotFound:
            return found

    def _records(self, located: Located) -> list[tuple[EndedName, str]]:
        """The names of its records, as far as they are known; results/ may hold a million."""
        deciders = {n: by for n, by in self._returned(located.id).items() if n < located.attempt}
        if located.result is not None:
            deciders[located.attempt] = located.node
        names = [EndedName(located.id, attempt, by) for attempt, by in sorted(deciders.items())]
        if located.archived:
            return [(name, layout.join(layout.bucket(located.id), name.archived("result"))) for name in names]
        return [(name, layout.join(layout.RESULTS, name.encode())) for name in names]

    def work(self, info: TaskInfo) -> str:
        """As `spool show`. Errors: none."""
        made = ("work", key(info.id), info.attempt)
        return self._answers.get(made, FRESH_S, lambda: work_of_task(self._store, info))

    def explain(self, task_id: str) -> Explanation:
        """As `spool explain`. Errors: NotFound, OSError."""
        return self._answers.get(
            ("explain", key(task_id)),
            EXPLAINED_S,
            lambda: explanation.explain(self._store, self._host, self._store.clock, task_id),
        )

    def history(self, task_id: str) -> list[Chapter]:
        """As `spool history`. Errors: NotFound, OSError."""
        found = self._answers.get(("history", key(task_id)), SCENE_S, lambda: histories.history(self._store, task_id))
        return found.chapters

    def scene(self, batch: str | None, cards: Callable[[], list[Card]] | None) -> Scene:
        """As for `spool graph`. cards: gives those of the batch; None: all are read. Errors: NotFound, OSError."""

        def draw() -> Scene:
            among = None if cards is None else self._located(cards())
            return graph_data.scene_of(self._store, batch, among=among)

        return self._answers.get(("scene", batch), SCENE_S, draw)

    def _located(self, cards: list[Card]) -> list[Located]:
        """Where the tasks of these cards are; those of which the view does not know it are searched for."""
        found = {card.id: card.located() for card in cards}
        lost = [task for task, located in found.items() if located is None]
        there = [located for located in found.values() if located is not None]
        return [*there, *(locate_many(self._store, lost).values() if lost else ())]

    def attempts(self, task_id: str) -> list[int]:
        """Return the attempts that have a log. Errors: OSError."""
        return self._answers.get(("logs", key(task_id)), FRESH_S, lambda: self._attempts(task_id))

    def _attempts(self, task_id: str) -> list[int]:
        return sorted({name.attempt for name, _ in list_logs(self._store, [task_id])})

    def log(self, task_id: str, attempt: int | None, offset: int, most: int) -> LogPart:
        """Return at most so many bytes of the log of an attempt, by default the last. offset: below 0 it counts from
        the end. Errors: NotFound, OSError.
        """
        asked = ("log", key(task_id), attempt, offset, most)
        return self._answers.get(asked, LOG_S, lambda: self._log(task_id, attempt, offset, most))

    def _log(self, task_id: str, attempt: int | None, offset: int, most: int) -> LogPart:
        card = self._find(task_id)
        for name, path in self._places(card, task_id, attempt):
            begin, data = self._read(path, offset, most)
            if data is None:
                continue
            ended = card is not None and (card.state != State.CLAIMED or name.attempt < card.attempt)
            end = begin + len(data)
            more = self._size(path) if len(data) == most else 0
            return LogPart(name.attempt, name.decider, begin, end, max(end, more), data, ended)
        ended = card is not None and card.state in ENDED_STATES
        return LogPart(attempt or 0, "", 0, 0, 0, b"", ended)

    def _places(self, card: Card | None, task_id: str, attempt: int | None) -> list[tuple[EndedName, str]]:
        """Where the log may be, the best first: where the view knows who ran which attempt, nothing is searched."""
        if card is None:
            locate(self._store, task_id)
        ran = {} if card is None else self._returned(card.id) | ({card.attempt: card.worker} if card.worker else {})
        known = card is not None and all(number in ran for number in range(1, card.attempt))
        if card is None or not (known or attempt in ran):
            logs = list_logs(self._store, [task_id])
            if attempt is not None and attempt not in {name.attempt for name, _ in logs}:
                raise NotFound(f"task {task_id} has no log of attempt {attempt}.")
            return [log for log in reversed(logs) if attempt in (None, log[0].attempt)]
        names = [EndedName(card.id, number, ran[number]) for number in sorted(ran, reverse=True)]
        directory = layout.bucket(card.id) if card.archived else layout.LOGS
        return [(name, layout.join(directory, name.log())) for name in names if attempt in (None, name.attempt)]

    def _read(self, path: str, offset: int, most: int) -> tuple[int, bytes | None]:
        """Read so many bytes; None where there is no such file. A client of NFS may hold an old size for a minute,
        and sees the new one when it opens the file: so only the way back from the end asks for it.
        """
        try:
            begin = max(0, self._store.fs.stat(path).size + offset) if offset < 0 else offset
            return begin, self._store.fs.read(path, most, offset=begin)
        except FileNotFoundError:
            return 0, None

    def _size(self, path: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._store.fs.stat(path).size
        return 0
