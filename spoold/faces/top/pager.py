"""A list of tasks, of which only the pages that are seen are loaded: there may be a million.

Law: a page is found by the cursor of the one before it. So a jump to the end asks the question backwards instead of
walking there, and counts rows from the end. Numbers of rows are those of the last look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spoold.faces.top.filters import reversed_of
from spoold.protocol.errors import BadFile

if TYPE_CHECKING:
    from spoold.client.view import Card, Found, Query, View

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
