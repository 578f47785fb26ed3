"""The list of tasks: all, or those that a filter leaves.

Law: only the pages that are seen are loaded. The number of matches is exact, and the title says both numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spoold.faces.top.figures import since
from spoold.faces.top.filters import SORTS, next_sort, query_of
from spoold.faces.top.fit import Cells, Column, table
from spoold.faces.top.lines import TASK, Behind, Line, Picture, Word, state, word
from spoold.faces.top.pager import Pager
from spoold.faces.top.pages.page import Page
from spoold.faces.top.source import Room, Source
from spoold.protocol.amount import figure

if TYPE_CHECKING:
    from spoold.client.view import Card, Query

COLUMNS = (
    Column("TASK", 18, 60),
    Column("STATE", 11, 11),
    Column("FOR", 4, 5, right=True),
    Column("TRY", 3, 4, rank=2, right=True),
    Column("TYPE", 8, 24, rank=1),
    Column("BATCH", 8, 30, rank=4),
    Column("WORKER", 8, 30, rank=5),
    Column("CODE", 8, 20, rank=3),
    Column("PRIO", 4, 6, rank=6, right=True),
    Column("AGE", 4, 5, rank=7, right=True),
)


class Tasks(Page):
    """Tasks, the newest change first."""

    name = "tasks"
    about = "all tasks, or those that the filter leaves"

    def __init__(self, typed: str = "") -> None:
        super().__init__()
        self._sort = SORTS[0]
        self.filter(typed)

    def filter(self, typed: str) -> None:
        """Show only the tasks that these words mean."""
        self.typed = typed
        self._pager = Pager(query_of(typed, self._sort))

    @property
    def query(self) -> Query:
        """Which tasks are shown, for an action on all of them."""
        return self._pager.query

    def press(self, key: str, at: int = 0) -> bool:
        """Change the order."""
        if key != "sort":
            return False
        self._sort = next_sort(self._sort)
        self.filter(self.typed)
        return True

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the tasks that are seen."""
        pager, now = self._pager, source.now()
        begin, cards = pager.window(source.view, room.first, room.height)
        laid = table(COLUMNS, [cells(card, now) for card in cards], room.width)
        so_far = "" if source.view.complete else " so far"
        counted = f"{figure(pager.matches)} of {figure(pager.total)}{so_far}" if self.typed else figure(pager.total)
        notes = [counted, f"by {self._sort.replace('-', 'last ')}", laid.note]
        head: list[Line] = [laid.head]
        if self.typed:
            head.insert(0, _facets(pager.facets))
        count = max(pager.matches, begin + len(cards))
        return Picture("tasks", laid.rows, head, begin, count, ", ".join(filter(None, notes)))


def cells(card: Card, now: float) -> Cells:
    """Return a task as a row."""
    name = Word(card.id)
    words = (
        name,
        state(card.state),
        Word(since(card.since, now), "mute"),
        Word(str(card.attempt) if card.attempt else ""),
        word(card.type),
        word(card.batch),
        word(card.worker, "mute"),
        word(card.code, "alert"),
        Word(str(card.priority) if card.priority else "", "mute"),
        Word(since(card.admitted, now), "mute"),
    )
    return Cells(words, key_of(card), Behind(TASK, card.id))


def key_of(card: Card) -> str:
    """Return what tells a row from all others: a rejected drop is not the task whose id it wanted."""
    return f"{card.id} {card.file}" if card.state == "rejected" else card.id


def _facets(facets: dict[str, dict[str, int]]) -> Line:
    """Return how many of the matches are in each state, as the facet counts them."""
    counts = facets.get("state", {})
    words: list[Word] = []
    for name, count in counts.items():
        if count:
            words += [Word("  " if words else ""), Word(f"{figure(count)} {state(name).text}", f"state:{name}")]
    return tuple(words)
