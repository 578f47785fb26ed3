"""Budgets of a leader: takes in what attempts cost from the feed, and counts what those that may run have reserved.

Law: an attempt is at each moment among those that may run, or ended and not taken in yet, or in the sums. The first
two are found in each step in the tree and in the queue of the feed, and the sums are restored with its coverage.
While anything of that is not known, nothing that draws on a budget starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spoold.master.limits.capacity import adrift
from spoold.master.limits.result_stream import Feed
from spoold.master.listing.task_metadata import unread
from spoold.master.state.leader_state import Desk
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import is_conditional, key, key_in
from spoold.protocol.result import EndedAttempt
from spoold.protocol.settings import Settings
from spoold.rules.gates import budget_gate
from spoold.rules.gates.budget_gate import Book, Purse
from spoold.rules.gates.budget_usage import NOTHING, Account, Asked, Sums, day_of

READING = "the leader still reads what earlier attempts cost, and lets nothing draw on a budget before"
UNCLEAR = "a claim cannot be read just now, so what it draws on a budget is unknown"
UNREAD = (
    "{} cannot be read, so nothing that draws on a budget starts; let the user that the master runs as read it "
    "(chmod, chown)"
)


class Budgets:
    """A subscriber of the feed, and the `book` by which its gate judges. It outlives epochs, as the feed does."""

    name = "budgets"

    def __init__(self) -> None:
        self.book = Book(closed=READING)
        self._settings, self._now = Settings(), 0.0
        self._news = False

    def begin(self, desk: Desk, feed: Feed) -> None:
        """Begin a step: by which settings and at what time it is judged. The first budget makes it a subscriber."""
        desk.book = self.book
        self._settings, self._now = desk.store.settings, desk.step.now.wall
        if self._settings.budgets:
            feed.join(desk, self)

    def take(self, attempt: EndedAttempt) -> None:
        """Take in one attempt."""
        self.book.sums.take(attempt, self._settings, self._now)
        self._news = True

    def save(self) -> Any:
        """Return the sums as a JSON value."""
        return self.book.sums.save()

    def restore(self, state: Any) -> None:
        """Replace the sums by saved ones; None: begin with nothing. Errors: ValueError."""
        self.book.sums = Sums(day=day_of(self._now)) if state is None else Sums.load(state)

    def count(self, desk: Desk, feed: Feed) -> None:
        """Count what is reserved, anew; moves of this step are then counted as they are made."""
        purse = _purse(desk)
        if purse is None:
            return
        known = feed.caught_up(desk)
        if known:
            self.book.sums.live(self._now)
        running = [(kind, asked) for kind, asked in _running(desk)]
        sure = [(kind, asked) for kind, asked in running if kind is not None and asked is not None]
        with desk.faults.handling("budgets of", "tasks that may run") as handling:
            purse.reserve_all(sure)
        unclear = len(sure) < len(running) or handling.fault is not None
        self.book.closed = READING if not known else UNCLEAR if unclear else ""
        if unclear:
            desk.report.notice(*map(UNREAD.format, unread(desk, conditions=True)))

    def hand_on(self, desk: Desk, feed: Feed) -> int:
        """Do the feed's part of a step. Returns how many attempts are left. Errors: OSError."""
        before, self._news = feed.caught_up(desk), False
        left = feed.step(desk)
        if self._news:
            self.count(desk, feed)  # what was taken in just now is spent, and no longer reserved
        waits = next(desk.backlog.kept(budget_gate.NAME), None) is not None
        if waits and (self._news or before != feed.caught_up(desk)):
            desk.step.change()  # what was settled just now may let others start
        return left

    def tell(self, desk: Desk) -> None:
        """Note in the journal which accounts keep tasks waiting from now on, and which no longer do."""
        purse, before = _purse(desk), self.book.held
        if self.book.closed or (purse is None and not before):
            return
        held = {} if purse is None else _held(desk, purse)
        self.book.held = held
        for account in held.keys() - before.keys():
            desk.journal.note("BUDGET_CLOSED", budget=account[0], period=account[1], waits=self.book.waits(account))
        for account in before.keys() - held.keys():
            if purse is not None and account[0] in purse.settings.budgets and not purse.open(account):
                held[account] = before[account]  # nobody asked for it in this step
            else:
                desk.journal.note("BUDGET_OPENED", budget=account[0], period=account[1])


def _purse(desk: Desk) -> Purse | None:
    found: Purse | None = desk.backlog.gathered.get(budget_gate.NAME)
    return found


def _running(desk: Desk) -> Iterator[tuple[str | None, Asked | None]]:
    """Yield type and budgets of each attempt that may run, or that ended and was not taken in yet; None: unknown."""
    learned = desk.learned

    def of(task_key: str, lane: str, *, conditional: bool) -> tuple[str | None, Asked | None]:
        asked = learned.asked.get(task_key) if conditional else NOTHING
        return kind_in(lane) if lane else None, asked

    seen = set()
    for state, directory, names in desk.view.moving():
        if state is State.RETURNED:
            continue
        branch = directory.partition("/")[2]
        for name in names.values():
            task_key = key(name.id)
            lane = branch if state is State.READY else learned.lanes.get(task_key, "")
            seen.add(task_key)
            yield of(task_key, lane, conditional=name.conditional)
    lost = {key_in(place.name): (place, lane) for place, lane in adrift(desk)}
    for task_key in lost.keys() - seen:
        place, lane = lost[task_key]
        yield of(task_key, lane, conditional=is_conditional(place.name))
    for end in desk.ends.queue:
        yield end.kind, end.asked


def _held(desk: Desk, purse: Purse) -> dict[Account, tuple[str, ...]]:
    """Return the accounts that keep tasks waiting in this step, as in `Book.held`."""
    found: dict[Account, set[str]] = {}
    for entry in desk.backlog.kept(budget_gate.NAME):
        asked = entry.conditions.asks(budget_gate.NAME)
        for short in purse.short(kind_in(entry.lane), asked if isinstance(asked, Asked) else NOTHING):
            found.setdefault(short.account, set()).add(entry.file)
    return {account: tuple(sorted(files)[: budget_gate.QUEUES_SHOWN]) for account, files in found.items()}
