"""One batch: how far it is, why its tasks failed, and who waits for whom.

Law: the counts are those of the view; the rest is read from the share, and a line says so where that fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spoold.faces.top.figures import counts_line, money, short, stack
from spoold.faces.top.lines import BATCH, Behind, Line, Picture, Row, Word, shown, word, wrap
from spoold.faces.top.pages import dag
from spoold.faces.top.pages.page import Page, kept
from spoold.faces.top.source import Room, Source
from spoold.protocol.amount import amount, figure, length, precise, some
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.client.batches import Progress


class OneBatch(Page):
    """The progress of one batch, and its tasks as a graph in text."""

    name = "batch"
    about = "a batch: progress, causes, graph as text"
    every_s = 5.0
    share = True

    def __init__(self, batch: str) -> None:
        super().__init__()
        self.batch = batch

    @property
    def subject(self) -> Behind:
        """The batch itself."""
        return Behind(BATCH, self.batch)

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the page."""
        counts = next((row.counts for row in source.view.batches() if row.batch == self.batch), {})
        rows = [Row(counts_line(counts)), Row(stack(counts, min(room.width, 100)))]
        try:
            rows += _progress(_look(source, self.batch), room.width)
            tasks, there = dag.whole(source.view.scene(self.batch))
        except SpoolError as error:
            rows += [Row(line) for line in wrap((word(error, "alert"),), room.width)]
            tasks, there = [], 0
        shown_tasks = kept(self.typed, tasks)
        if there:
            seen = f"{figure(len(shown_tasks))} of {figure(there)}" if len(shown_tasks) != there else figure(there)
            rows += [Row(()), Row((Word(f"TASKS {seen}, each below what it waits for", "bold"),)), *shown_tasks]
        rows = [replace(row, key=row.key or f"line {number}") for number, row in enumerate(rows)]
        return shown(f"batch {word(self.batch).text}", rows, note=f"{figure(sum(counts.values()))} tasks")


def _look(source: Source, batch: str) -> Progress:
    from spoold.client.batches import Batch

    def look() -> Progress:
        with source.spool.reaching():
            return Batch(source.spool.store, batch).look()

    return source.kept(f"batch {batch}", look)


def _progress(progress: Progress, width: int) -> list[Row]:
    lines: list[Line] = []
    if progress.ended < progress.total:
        left = progress.eta_s
        to_go = f"about {length(left)} to go" if left is not None else f"time to go unknown, {progress.eta_unknown}"
        lines.append((word(to_go),))
    if progress.spent is not None:
        spent = progress.spent
        parts = [amount(spent.attempts, "attempt"), precise(spent.duration_s), money(spent.cost_usd)]
        tokens = f"{short(spent.tokens_used)} tokens" if spent.tokens_used else ""
        lines.append((Word(f"ended tasks took {', '.join(filter(None, [*parts, tokens]))}", "mute"),))
    for cause in progress.causes:
        why = f"{cause.code}: {cause.message}" if cause.message else cause.code
        names = some(list(cause.ids)) + (f" of {figure(cause.count)}" if cause.count > len(cause.ids) else "")
        lines.append((Word(f"{figure(cause.count)} failed  ", "alert"), word(why), word(f"  ({names})", "mute")))
    return [Row(each) for line in lines for each in wrap(line, width, 2)]
