"""What all pages have in common.

Law: `gather` runs in a thread, may take long, and changes nothing of the screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from spoold.faces.top.aside import OneFlight
from spoold.faces.top.filters import fits
from spoold.faces.top.fit import Cells, Column, table
from spoold.faces.top.lines import TASK, Behind, Line, Picture, Row, shown, text_of
from spoold.faces.top.sheet import Place
from spoold.faces.top.source import Room, Source


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
