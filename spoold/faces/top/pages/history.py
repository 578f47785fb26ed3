"""Everything that happened to a task, told in its order.

Law: no sentence is made here; each is that of the client.
"""

from __future__ import annotations

from spoold.faces.top.figures import moment
from spoold.faces.top.fit import Cells, Column
from spoold.faces.top.lines import Picture, Word, word
from spoold.faces.top.pages.page import OfTask
from spoold.faces.top.source import Room, Source
from spoold.protocol.amount import precise

_COLUMNS = (
    Column("AT", 19, 30),
    Column("AFTER", 6, 10, right=True),
    Column("TRY", 3, 4, right=True),
    Column("WHAT", 20, 300),
    Column("BY", 8, 30, rank=1),
)


class History(OfTask):
    """The story of one task."""

    name = "history"
    about = "everything that happened to a task"
    every_s = 10.0
    share = True

    def gather(self, source: Source, room: Room) -> Picture:
        """Return each chapter as a row."""
        told = source.view.history(self.id)
        began = moment(told[0].at) if told else None
        cells = []
        for number, chapter in enumerate(told):
            at = moment(chapter.at)
            after = at - began if at is not None and began is not None else -1.0
            words = (
                word(chapter.at[:19] or "-"),
                Word("-" if after < 0 else precise(after), "mute"),
                Word("-" if chapter.attempt is None else str(chapter.attempt)),
                word(chapter.text, most=300),
                word(chapter.writer, "mute"),
            )
            cells.append(Cells(words, str(number)))
        return self.tabled(f"history of {self.id}", _COLUMNS, cells, room)
