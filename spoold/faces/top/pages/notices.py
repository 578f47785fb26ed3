"""What people are told: questions, what happened, what is wrong.

Law: an alert and a warning are shown whole, in as many lines as they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spoold.faces.top.figures import moment, since
from spoold.faces.top.fit import Cells, Column
from spoold.faces.top.lines import QUESTION, TASK, Behind, Line, Picture, Row, Word, shown, word, wrap
from spoold.faces.top.pages.page import Page, kept
from spoold.faces.top.source import Room, Source

if TYPE_CHECKING:
    from spoold.client.read.questions import Question

ASKS_COLUMNS = (
    Column("TASK", 16, 50),
    Column("AGE", 4, 5, right=True),
    Column("QUESTION", 20, 200),
    Column("CHOICES", 8, 40, rank=1),
    Column("UNTIL", 20, 20, rank=2),
)
EVENTS_COLUMNS = (
    Column("AT", 8, 12),
    Column("EVENT", 10, 18),
    Column("TASK", 16, 50),
    Column("TRY", 3, 4, rank=2, right=True),
    Column("BY", 8, 30, rank=1),
    Column("DETAIL", 10, 200, rank=3),
)


class Asks(Page):
    """Questions that nobody has answered."""

    name = "asks"
    about = "questions and approvals that stand"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the questions."""
        cells = [ask_cells(one, source.now()) for one in source.last("questions", source.view.questions)]
        return self.tabled("questions", ASKS_COLUMNS, cells, room)


def ask_cells(one: Question, now: float) -> Cells:
    """Return a question as a row."""
    age = since(moment(one.at), now)
    words = (Word(one.task), Word(age), word(one.ask), word(", ".join(one.choices)), word(one.until))
    name = one.question if one.attempt is not None else ""
    return Cells(words, f"{one.task} {one.question}", Behind(QUESTION, one.task, (name, one.ask, *one.choices)))


class Events(Page):
    """What happened, the last at the end."""

    name = "events"
    about = "the last events, as the journals tell them"

    def __init__(self, task: str = "") -> None:
        super().__init__()
        self._task = task

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the events, followed."""
        cells = []
        for one in source.view.events(task=self._task, most=1000):
            detail = " ".join(f"{name}={said}" for name, said in (one.detail or {}).items() if said not in (None, ""))
            words = (
                word(one.at[11:19]),
                word(one.event, "bold"),
                word(one.task),
                Word("" if one.attempt is None else str(one.attempt)),
                word(one.writer, "mute"),
                word(detail, most=300),
            )
            cells.append(Cells(words, str(one.number), Behind(TASK, one.task) if one.task else None))
        return self.tabled("events, the last first", EVENTS_COLUMNS, cells[::-1], room)


class Alerts(Page):
    """What is wrong now."""

    name = "alerts"
    about = "alerts, warnings, and why the share cannot be read"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return each alert and warning, whole."""
        rows = kept(self.typed, alert_rows(source, room.width))
        count = len([row for row in rows if row.key])
        return shown("alerts", rows or [Row((Word("nothing is wrong", "mute"),))], note=f"{count:,}")


def alert_rows(source: Source, width: int) -> list[Row]:
    """Return what is wrong: the share, alerts, warnings; each in as many lines as it needs."""
    view, picture = source.view, source.view.picture
    rows: list[tuple[str, Line, Behind | None]] = []
    if view.problem:
        rows.append(("problem", (Word("! share  ", "alert"), word(view.problem)), None))
    for alert in picture.alerts if picture is not None else ():
        line: Line = (word(f"! {alert.name}  ", "alert"), word(alert.text), word(f" (since {alert.since})", "mute"))
        rows.append((f"alert {alert.name} {alert.subject}", line, Behind(TASK, alert.task) if alert.task else None))
    for number, warning in enumerate(picture.warnings if picture is not None else ()):
        rows.append((f"warning {number}", (Word("! ", "low"), word(warning)), None))
    found = []
    for key, said, behind in rows:
        first, *more = wrap(said, width, 2)
        found += [Row(first, key, behind), *(Row(each) for each in more)]
    return found
