"""What runs now: since when, how far it is, what it has cost.

Law: what a task says of itself is text of other people. Of what it does not say the cell is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spoold.faces.top.figures import age, money, progress, short, since
from spoold.faces.top.fit import Cells, Column
from spoold.faces.top.lines import TASK, Behind, Picture, Word, word
from spoold.faces.top.pages.page import Page
from spoold.faces.top.source import Room, Source

if TYPE_CHECKING:
    from spoold.client.view import Run

COLUMNS = (
    Column("TASK", 16, 50),
    Column("FOR", 4, 5, right=True),
    Column("TRY", 3, 4, rank=5, right=True),
    Column("CHARGED", 7, 7, rank=7, right=True),
    Column("TYPE", 8, 20, rank=3),
    Column("WORKER", 8, 30, rank=6),
    Column("TOKENS", 6, 8, rank=4, right=True),
    Column("COST", 6, 8, rank=4, right=True),
    Column("SILENT", 6, 6, rank=2, right=True),
    Column("PROGRESS", 20, 200, rank=1),
)


class Running(Page):
    """The tasks that run, by worker."""

    name = "running"
    about = "what runs: since when, progress, tokens, cost"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the tasks that run."""
        now = source.now()
        return self.tabled("running", COLUMNS, [cells(run, now) for run in source.view.running()], room)


def cells(run: Run, now: float) -> Cells:
    """Return a task that runs as a row."""
    words = (
        Word(run.id, "state:claimed"),
        Word(since(run.since, now)),
        Word(str(run.attempt)),
        _charged(run),
        word(run.type),
        word(run.worker, "mute"),
        Word(short(run.tokens)),
        Word(money(run.cost_usd)),
        Word("" if run.quiet_s is None else age(run.quiet_s), "mute"),
        _progress(run),
    )
    return Cells(words, run.id, Behind(TASK, run.id))


def _charged(run: Run) -> Word:
    """Return the failures and crashes that are charged on its retry budget; its page says how many are left."""
    if run.card is None:
        return Word("")
    charged = run.card.failures + run.card.crashes
    return Word(f"{run.card.failures}+{run.card.crashes}", "low" if charged else "mute")


def _progress(run: Run) -> Word:
    notes = []
    if run.lent:
        notes.append("(waits, slot lent)")
    if run.frozen_s:
        notes.append(f"(was frozen for {age(run.frozen_s)})")
    said = progress(run.progress)
    return Word(" ".join(filter(None, [*notes, said.text])))
