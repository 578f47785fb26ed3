"""The cards of all tasks, and how listings and events change them.

Law: nothing here reads. A listing is the truth at its moment; an event that is read while the listing is under way is
newer, and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from spoold.client.view.card import Card, Row, card_key, card_of
from spoold.client.view.moves import Move, describe, is_news, make
from spoold.protocol.lanes import kind_in, own_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.store.locate import Located


class Table:
    """cards: by key; rows: how many cards have the same words; changes: rises with each change.

    rejected: of rejected drops, by the key of the id that they wanted, the key of the last one's card.
    returned: of tasks that were tried again, by key, who decided which attempt: their records have these names.
    """

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.rows: Counter[Row] = Counter()
        self.rejected: dict[str, str] = {}
        self.returned: dict[str, dict[int, str]] = {}
        self.changes = 0
        self.tick = 0

    def find(self, task_id: str) -> Card | None:
        """The card of a task; where there is none, that of the last drop that was rejected and wanted its id."""
        name = key(task_id)
        return self.cards.get(name) or self.cards.get(self.rejected.get(name, ""))

    def counts(self) -> Counter[str]:
        """How many cards are in each state."""
        found: Counter[str] = Counter()
        for row, number in self.rows.items():
            found[row[0]] += number
        return found

    @contextmanager
    def changing(self, card: Card) -> Iterator[None]:
        """Change a card of the table within, or one that comes into it."""
        before = card.row
        yield
        after = card.row
        self.changes += 1
        if before != after:
            self._leave(before)
            self.rows[after] += 1

    def put(self, card_key: str, card: Card) -> None:
        """Add a card, in the place of one with the same key."""
        old = self.cards.get(card_key)
        if old is not None:
            self._leave(old.row)
        if card.id == card_key:
            card.id = card_key  # one text for both, of a hundred thousand
        self.cards[card_key] = card
        if card.state == State.REJECTED:
            self.rejected[key(card.id)] = card_key
        self.rows[card.row] += 1
        self.changes += 1

    def drop(self, card_key: str) -> None:
        """Forget a card, if there is one."""
        card = self.cards.pop(card_key, None)
        if card is not None:
            self._leave(card.row)
            self.changes += 1
            if self.rejected.get(key(card.id)) == card_key:
                del self.rejected[key(card.id)]
        self.returned.pop(card_key, None)

    def _leave(self, row: Row) -> None:
        self.rows[row] -= 1
        if self.rows[row] <= 0:
            del self.rows[row]

    def follow(self, move: Move) -> None:
        """Take over what has just happened."""
        card = self.cards.get(key(move.task))
        self._note_return(move)
        if card is None:
            card = Card(move.task, "", attempt=-1)
            make(card, move)
            self.put(key(move.task), card)
        else:
            with self.changing(card):
                make(card, move) if is_news(card, move) else describe(card, move)
        self.tick += 1
        card.tick = self.tick

    def recall(self, move: Move) -> None:
        """Take over what happened before everything was listed: the listing has the place, the event the words."""
        self._note_return(move)
        card = self.cards.get(key(move.task))
        if card is not None:
            with self.changing(card):
                describe(card, move)

    def archive(self, task_id: str) -> None:
        """A task was brought into the archive."""
        card = self.cards.get(key(task_id))
        if card is not None and not card.archived:
            with self.changing(card):
                card.archived = True

    def _note_return(self, move: Move) -> None:
        if move.event == "RETURNED":
            self.returned.setdefault(key(move.task), {})[move.attempt - 1] = move.by


class Sweep:
    """One listing of some states: what it does not meet, and nothing moved meanwhile, is not there any more."""

    def __init__(self, table: Table, states: Collection[State]) -> None:
        self._table, self._states = table, {state.value for state in states}
        self._met: set[str] = set()
        table.tick += 1
        self._began = table.tick

    def meet(self, located: Located) -> None:
        """Take over one task file that was listed. A token that is seen twice has moved: its later place counts."""
        name = card_key(located)
        self._met.add(name)
        old = self._table.cards.get(name)
        if old is not None and old.tick > self._began:
            return
        card = card_of(located, kind_in(own_lane(located.lane)) if located.lane else "")
        if old is not None:
            _inherit(card, old)
        self._table.put(name, card)

    def end(self) -> None:
        """Everything was listed."""
        gone = [
            name
            for name, card in self._table.cards.items()
            if card.state in self._states and name not in self._met and card.tick < self._began
        ]
        for name in gone:
            self._table.drop(name)


def _inherit(card: Card, old: Card) -> None:
    """What a name does not say, and the view knew already."""
    card.type, card.batch, card.read = card.type or old.type, old.batch, old.read
    card.code, card.admitted = old.code, card.admitted or old.admitted
    if card.state == State.COMPLETED:
        card.code = ""
    if (old.state, old.attempt) == (card.state, card.attempt):
        card.since = old.since
        card.file = card.file or old.file
        card.lane = card.lane or old.lane
