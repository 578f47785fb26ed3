"""What names and events did not tell, read from the files of tasks: type and batch, and the conditions of those that
wait.

Law: looks and never touches. No file is read twice. On a share a few are read at each look, as the allowance permits.
"""

from __future__ import annotations

from collections import deque
from sys import intern

from spoold.client.info import kind_of, read_content, text_in
from spoold.client.view.card import Card
from spoold.client.view.table import Table
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.lifecycle import State
from spoold.protocol.task import Task
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.registry import conditions_of
from spoold.store.store import Store

# How long (s) one look may read on a local disk, and how many files it may read on a share.
READING_S, READS = 0.1, 3


class Filling:
    """The tasks whose files are to be read. conditions: of the tasks that wait and were read, by key."""

    def __init__(self, store: Store, table: Table) -> None:
        self._store, self._table = store, table
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self.conditions: dict[str, Conditions] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def want(self, name: str, card: Card) -> None:
        """Read the file of this card some day, if there is something to be read."""
        if card.state != State.WAITING:
            self.conditions.pop(name, None)
        if name not in self._queued and self._lacks(name, card):
            self._queue.append(name)
            self._queued.add(name)

    def _lacks(self, name: str, card: Card) -> bool:
        if card.state == State.WAITING and card.conditional and name not in self.conditions:
            return True
        return not card.read

    def some(self) -> list[tuple[str, Card]]:
        """Take the next cards whose files are to be read now."""
        found: list[tuple[str, Card]] = []
        while self._queue and len(found) < READS:
            name = self._queue.popleft()
            self._queued.discard(name)
            card = self._table.cards.get(name)
            if card is not None and self._lacks(name, card):
                found.append((name, card))
        return found

    def read(self, card: Card) -> tuple[dict[str, object], Conditions] | None:
        """Return the content of its file and its conditions; None where the file has moved on."""
        located = card.located()
        content = read_content(self._store, located) if located is not None else {}
        if not content or located is None:
            return None
        conditions = NO_CONDITIONS
        if card.conditional:
            try:
                conditions = conditions_of(codec.check(Task, content, located.path))
            except (BadFile, BadName):
                conditions = NO_CONDITIONS  # the leader sets it aside
        return content, conditions

    def take(self, name: str, card: Card, found: tuple[dict[str, object], Conditions] | None) -> None:
        """Take over what was read. A file that has moved on is wanted again when an event tells where it is."""
        if found is None:
            return
        card.read = True
        content, conditions = found
        kind, batch = card.type or intern(kind_of(content)), card.batch or intern(text_in(content, "batch"))
        if (kind, batch) != (card.type, card.batch):
            with self._table.changing(card):
                card.type, card.batch = kind, batch
        if card.state == State.WAITING and card.conditional:
            self.conditions[name] = conditions
