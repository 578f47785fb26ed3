"""What all pages have in common, and the filter that a person types after `/`.

A filter is like `state:failed,rejected type:review node-3`.

Law: `gather` runs in a thread, may take long, and changes nothing of the screen. A word that is no filter is looked
for as text; nothing that a person types is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spoold.faces.top.source import OneFlight, Room, Source
from spoold.faces.top.text_layout import TASK, Behind, Cells, Column, Line, Picture, Row, shown, table, text_of
from spoold.faces.top.widgets import Place
from spoold.protocol.lifecycle import SHOWN

if TYPE_CHECKING:
    from spoold.client.view import Query


class Page:
    """One page. name: as in the command line; about: what the help says of it.

    every_s: how often it is gathered at least while it is seen; share: whether it asks the share, so that it is also
    gathered as often while nothing in the view changes.
    """

    name = ""
    about = ""
    every_s = 5.0
    share = False

    def __init__(self) -> None:
        self.typed = ""
        self.flight = OneFlight()
        self.picture: Picture | None = None
        self.place: Place | None = None
        self.version = -1
        self.gathered = self.took = 0.0

    def gather(self, source: Source, room: Room) -> Picture:
        """Return what the page shows."""
        raise NotImplementedError

    def filter(self, typed: str) -> None:
        """Show only what has these words."""
        self.typed = typed

    def press(self, key: str, at: int = 0) -> bool:
        """Take a key of this page alone; return whether it is one. at: the row under the cursor."""
        return False

    def moved(self, at: int, count: int) -> None:
        """Learn that a person has moved the cursor to this row, of so many."""

    @property
    def subject(self) -> Behind | None:
        """What actions are about where no row says so."""
        return None

    def tabled(
        self,
        title: str,
        columns: Sequence[Column],
        cells: Sequence[Cells],
        room: Room,
        *,
        lines: Sequence[Line] = (),
        note: str = "",
        there: int = 0,
    ) -> Picture:
        """Return a table of rows, without those that the filter leaves out. there: how many there are, where these
        are not all.
        """
        laid = table(columns, cells, room.width)
        rows = laid.rows
        if self.typed:
            whole = [" ".join(word.text for word in row.words) for row in cells]
            rows = [row for row, text in zip(rows, whole, strict=True) if fits(self.typed, text)]
        notes = [self.counted(len(rows), max(there, len(cells))), note, laid.note]
        return shown(title, rows, (*lines, laid.head), note=", ".join(filter(None, notes)))

    def counted(self, seen: int, there: int) -> str:
        """Return how many of how many rows the filter leaves."""
        return f"{seen:,} of {there:,}" if self.typed or seen != there else f"{there:,}"


class OfTask(Page):
    """A page about one task."""

    def __init__(self, task_id: str) -> None:
        super().__init__()
        self.id = task_id

    @property
    def subject(self) -> Behind:
        """The task itself."""
        return Behind(TASK, self.id)


def kept(typed: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that have all the words."""
    return [row for row in rows if fits(typed, text_of(row.line))] if typed else list(rows)


# What a person types after `/` as a question to the view: `state:failed,rejected type:review node-3`.


NAMES = ("state", "type", "batch", "worker", "code")
SORTS = ("-since", "-admitted", "id", "state", "type", "batch", "-attempt", "worker")
_STATES = {state.value: state.value for state in SHOWN} | {"running": "claimed"}


def query_of(typed: str, sort: str = SORTS[0]) -> Query:
    """Return the question that these words are."""
    from spoold.client.view import Query

    values: dict[str, list[str]] = {name: [] for name in NAMES}
    text: list[str] = []
    for each in typed.split():
        name, colon, said = each.partition(":")
        if colon and name.lower() in values and said:
            values[name.lower()] += [one for one in said.split(",") if one]
        else:
            text.append(each)
    return Query(
        states=tuple(_STATES.get(one.lower(), one) for one in values["state"]),
        types=tuple(values["type"]),
        batches=tuple(values["batch"]),
        workers=tuple(values["worker"]),
        codes=tuple(values["code"]),
        text=" ".join(text),
        sort=sort,
    )


def words_of(query: Query) -> str:
    """Return the words that a person would type for a question."""
    named = zip(NAMES, (query.states, query.types, query.batches, query.workers, query.codes), strict=True)
    parts = [f"{name}:{','.join(values)}" for name, values in named if values]
    return " ".join([*parts, *([query.text] if query.text else [])])


def reversed_of(query: Query) -> Query:
    """Return the same question with the last task first."""
    sort = query.sort.removeprefix("-") if query.sort.startswith("-") else f"-{query.sort}"
    return replace(query, sort=sort)


def next_sort(sort: str) -> str:
    """Return the order after this one."""
    return SORTS[(SORTS.index(sort) + 1) % len(SORTS)] if sort in SORTS else SORTS[0]


def fits(typed: str, text: str) -> bool:
    """Return whether a row of another list has all the words in it."""
    folded = text.casefold()
    return all(each.casefold() in folded for each in typed.split())
