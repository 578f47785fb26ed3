"""One batch: how far it is, why its tasks failed, what it took, and who waits for whom.

Law: counts and states are those of the view, of now. What waits for what is read from the share, at most once a
minute.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from spoold.faces.top import task_page
from spoold.faces.top.list_pages import ended
from spoold.faces.top.page import Page, kept
from spoold.faces.top.source import Room, Source
from spoold.faces.top.task_page import scene_of, state_of
from spoold.faces.top.text_layout import (
    BATCH,
    Behind,
    Line,
    Picture,
    Row,
    Word,
    counts_line,
    shown,
    since,
    stack,
    summed,
    word,
    wrap,
)
from spoold.protocol.amount import amount, figure
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.pictures.picture_data import Scene

_CAUSES = 8
_BAR_MOST = 100


class OneBatch(Page):
    """The progress of one batch, and its tasks as a graph in text."""

    name = "batch"
    about = "a batch: progress, causes, graph as text"
    every_s = 5.0

    def __init__(self, batch: str) -> None:
        super().__init__()
        self.batch = batch

    @property
    def subject(self) -> Behind:
        """The batch itself."""
        return Behind(BATCH, self.batch)

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the page."""
        row = next((row for row in source.view.batches() if row.batch == self.batch), None)
        rows: list[Row] = []
        if row is not None:
            now = source.now()
            share = f"{100 * ended(row) // max(1, row.total)} %"
            done = f"{figure(ended(row))} of {amount(row.total, 'task')} ended, {share}"
            ages = f"  first admitted {since(row.first, now)} ago, last {since(row.last, now)} ago"
            rows += [Row((Word(done, "bold"), Word(ages, "mute"))), Row(counts_line(row.counts))]
            rows.append(Row(stack(row.counts, min(room.width, _BAR_MOST))))
        rows += self._of_scene(source, room.width)
        rows = [replace(row, key=row.key or f"line {number}") for number, row in enumerate(rows)]
        return shown(
            f"batch {word(self.batch).text}", rows, note=amount(row.total, "task") if row is not None else ""
        )

    def _of_scene(self, source: Source, width: int) -> list[Row]:
        scene = scene_of(source, self.batch)
        if scene is None:
            return [Row((Word("what waits for what is being read …", "mute"),))]
        if isinstance(scene, SpoolError):
            return [Row(line) for line in wrap((word(scene, "alert"),), width)]
        tasks, there = task_page.whole(scene, partial(state_of, source))
        seen = kept(self.typed, tasks)
        count = figure(there) if len(seen) == there else f"{figure(len(seen))} of {figure(there)}"
        title = Row((Word(f"TASKS {count}, each below what it waits for", "bold"),))
        return [*_spent(scene, width), Row(()), title, *seen]


def _spent(scene: Scene, width: int) -> list[Row]:
    """Return what its tasks took, and why they failed, the most frequent cause first."""
    lines: list[Line] = []
    if scene.spent is not None:
        lines.append((Word(f"ended tasks took {summed(scene.spent)}", "mute"),))
    causes = Counter(task.cause for task in scene.inside if task.cause is not None)
    for (code, message), count in causes.most_common(_CAUSES):
        why = f"{code}: {message}" if message else code
        lines.append((Word(f"{figure(count)} failed  ", "alert"), word(why)))
    if len(causes) > _CAUSES:
        lines.append((Word(f"and {amount(len(causes) - _CAUSES, 'other cause')}", "mute"),))
    return [Row(each) for line in lines for each in wrap(line, width, 2)]
