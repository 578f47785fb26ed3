"""The list of tasks, all or those that a filter leaves, of which only the pages that are seen are loaded.

Law: there may be a million. A page is found by the cursor of the one before it. So a jump to the end asks the
question backwards instead of walking there, and counts rows from the end; numbers of rows are those of the last look.
The number of matches is exact, and the title says both numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spoold.faces.top.page import SORTS, Page, next_sort, query_of, reversed_of
from spoold.faces.top.source import Room, Source
from spoold.faces.top.text_layout import TASK, Behind, Cells, Column, Line, Picture, Word, since, state, table, word
from spoold.protocol.amount import figure
from spoold.protocol.errors import BadFile

if TYPE_CHECKING:
    from spoold.client.view import Card, Found, Query, View


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


# A list of tasks, of which only the pages that are seen are loaded: there may be a million.


PAGE = 200


class Pager:
    """The matches of one question, from its begin or, `backwards`, from its end."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.matches = 0
        self.total = 0
        self.facets: dict[str, dict[str, int]] = {}
        self._backwards = False
        self._cursors = [""]

    def window(self, view: View, first: int, lines: int) -> tuple[int, list[Card]]:
        """Return the matches that are loaded around these rows: the number of the first, and the cards."""
        if self.matches and first and first + lines >= self.matches and self._far(first):
            self._turn(backwards=True)
        elif not first:
            self._turn(backwards=False)
        if self._backwards:
            begin, cards = self._load(view, self.matches - first - lines, lines)
            return max(0, self.matches - begin - len(cards)), cards[::-1]
        return self._load(view, first, lines)

    def _far(self, first: int) -> bool:
        """Whether a walk from where the pages are known would be long."""
        return not self._backwards and first // PAGE >= len(self._cursors)

    def _turn(self, *, backwards: bool) -> None:
        if backwards != self._backwards:
            self._backwards, self._cursors = backwards, [""]

    def _load(self, view: View, first: int, lines: int) -> tuple[int, list[Card]]:
        """Return the pages with these rows, counted from where the pages begin."""
        try:
            return self._loaded(view, first, lines)
        except BadFile:  # the cursors are of a look that is over
            self._cursors = [""]
            return self._loaded(view, first, lines)

    def _loaded(self, view: View, first: int, lines: int) -> tuple[int, list[Card]]:
        query = reversed_of(self.query) if self._backwards else self.query
        number = max(0, first) // PAGE
        last = max(0, first + lines - 1) // PAGE
        number = self._walk(view, query, number)
        begin, cards = number * PAGE, []
        while True:
            found = self._ask(view, query, number)
            cards += found.cards
            self._learn(number, found)
            if number >= last or not found.cursor:
                return begin, cards
            number += 1

    def _walk(self, view: View, query: Query, wanted: int) -> int:
        """Learn the cursors up to this page; return it, or the last that there is."""
        while len(self._cursors) <= wanted:
            found = self._ask(view, query, len(self._cursors) - 1)
            if not found.cursor:
                return len(self._cursors) - 1
            self._learn(len(self._cursors) - 1, found)
        return wanted

    def _ask(self, view: View, query: Query, number: int) -> Found:
        found = view.find(query, cursor=self._cursors[number], limit=PAGE)
        self.matches, self.total, self.facets = found.matches, found.total, found.facets
        return found

    def _learn(self, number: int, found: Found) -> None:
        if found.cursor and number + 1 >= len(self._cursors):
            self._cursors.append(found.cursor)
