"""Breakers of types: counts the failures in a row over the whole pool, from the feed, and sends one task to try.

Law: the rows are saved and restored together with the coverage of the feed, so a new leader goes on counting where
the one before stopped, and it lets nothing of such a type start before it has read what ended until then. Only which
task tries is not saved: a new leader lets another one try, and one alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spoold.master.desk import Desk
from spoold.master.feed import Feed
from spoold.master.starts import Trial
from spoold.master.trials import ask, runs
from spoold.protocol.ended_attempt import EndedAttempt
from spoold.protocol.names import key
from spoold.protocol.settings import BreakerSettings
from spoold.rules.scheduling.breakers import CLOSED, Book, Row, breakers_of, went
from spoold.rules.scheduling.resources import BREAKER, Capacity
from spoold.store.store import stamp

# What the journal is told of a breaker: the type, and what it came to.
_Turn = tuple[str, Row]


class Breakers:
    """A subscriber of the feed, and the `book` by which its gate judges. It outlives epochs, as the feed does."""

    name = "breakers"

    def __init__(self) -> None:
        self.book = Book()
        self._rules: dict[str, BreakerSettings] = {}
        self._wall: Callable[[], float] = lambda: 0.0
        self._trials: dict[str, Trial] = {}
        self._turns: list[_Turn] = []
        self._decided = False  # whether a task that tried has ended since the last `tell`

    def begin(self, desk: Desk, feed: Feed) -> None:
        """Begin a step: by which settings and which clock it is counted. The first breaker makes it a subscriber."""
        self._rules, self._wall = breakers_of(desk.store.settings), desk.store.common.wall
        desk.breakers, self._trials = self.book, desk.starts.probes
        if self._rules:
            feed.join(desk, self)
        self.book.reading = bool(self._rules) and not feed.caught_up(desk)
        for kind, row in list(self.book.rows.items()):
            self._put(kind, row.under(self._rules.get(kind), self._wall()))

    def take(self, attempt: EndedAttempt) -> None:
        """Take in one attempt."""
        kind = attempt.type or ""
        rule, well, trial = self._rules.get(kind), went(attempt.status, attempt.code), self._trials.get(kind)
        tried = trial is not None and _is(trial, attempt.id, attempt.attempt)
        self._decided = self._decided or tried
        if rule is not None and well is not None:
            row = self.book.rows.get(kind, CLOSED)
            # The step may have begun long ago: a share that was silent since then has used up no time of the breaker.
            self._put(kind, row.after(well, _words(attempt), rule, self._wall(), tried=tried))

    def save(self) -> Any:
        """Return the rows as a JSON value."""
        return self.book.save()

    def restore(self, state: Any) -> None:
        """Replace the rows by saved ones; None: begin with nothing. Errors: ValueError."""
        self.book.rows = {} if state is None else Book.load(state)

    def tell(self, desk: Desk, feed: Feed) -> None:
        """Note in the journal which breakers have opened and closed; what was counted now may change who starts."""
        turns, self._turns = self._turns, []
        for kind, row in turns:
            if row.until is None:
                desk.journal.note("BREAKER_CLOSED", type=kind, of="pool")
            else:
                until = stamp(row.until)
                desk.journal.note("BREAKER_OPENED", type=kind, of="pool", failures=row.failures, until=until)
        if turns:
            feed.save_soon()  # else the next leader may have to count the same failures again
        if turns or self._decided or (self.book.reading and feed.caught_up(desk)):
            desk.step.change()
        self._decided = False

    def _put(self, kind: str, row: Row) -> None:
        before = self.book.rows.get(kind, CLOSED)
        self.book.put(kind, row)
        if before.until != row.until:
            self._trials.pop(kind, None)
            if before.until is None or row.until is None:
                self._turns.append((kind, row))


def look(desk: Desk) -> tuple[dict[str, Capacity], dict[str, int]]:
    """Begin trials of breakers whose time is over, and end those that were decided by nothing; return how many tasks
    of each type with an open breaker may start, and have started.
    """
    book, trials, now = desk.breakers, desk.starts.probes, desk.step.now.wall
    tripped, capacity, used = book.tripped(), dict[str, Capacity](), dict[str, int]()
    book.trying.clear()
    for kind in trials.keys() - tripped.keys():
        del trials[kind]
    for kind, until in tripped.items():
        half_open, name = until <= now, f"{BREAKER}{kind}"
        if half_open:
            trial = trials.setdefault(kind, Trial())
            if trial.task is not None and not runs(desk, trial.task) and not _awaits_record(desk, trial):
                trial.undecided()
            if trial.task is None:
                ask(desk, trial.asked, name)
            used[name], book.trying[kind] = int(trial.task is not None), trial.tries
        else:
            trials.pop(kind, None)  # its time was put off
        capacity[name] = Capacity(int(half_open), f"type {kind}", f"[types.{kind}] breaker", most=0)
    return capacity, used


def _awaits_record(desk: Desk, trial: Trial) -> bool:
    """Whether the feed has not read yet how the attempt ended."""
    return any(_is(trial, end.name.id, end.name.attempt) for end in desk.ends.queue)


def _is(trial: Trial, task_id: str, attempt: int) -> bool:
    """Whether that attempt is the one that tries, or was asked to: its end may be listed before its start is."""
    task = trial.task or trial.asked.task
    return task is not None and (key(task.id), task.attempt) == (key(task_id), attempt)


def _words(attempt: EndedAttempt) -> str:
    how = f"exit code {attempt.exit_code}" if attempt.code == "EXIT_NONZERO" and attempt.exit_code else attempt.code
    return f"task {attempt.id}, attempt {attempt.attempt}, {how}"
