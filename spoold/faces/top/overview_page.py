"""The first page: nodes, the queue by age, what runs, what failed, why tasks wait, what people are asked.

Law: each section says how many of how many rows it shows, and its name is that of the page with all of them. No
section takes the room that another needs for its first row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spoold.faces.top import list_pages
from spoold.faces.top.page import Page
from spoold.faces.top.source import Room, Source
from spoold.faces.top.text_layout import Cells, Column, Line, Picture, Row, Word, cut, shown, table, word
from spoold.protocol.amount import figure
from spoold.protocol.errors import Unavailable

if TYPE_CHECKING:
    from spoold.client.read.questions import Question
    from spoold.client.view import Reason

# From so many columns on there are two.
TWO_FROM = 140
GAP = 3


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the overview: a table, or lines that are laid out already. there: how many rows there are in all;
    lead: a line of words before the rows.
    """

    name: str
    columns: Sequence[Column] = ()
    cells: Sequence[Cells] = ()
    lines: Sequence[Row] = ()
    there: int | None = None
    said: str = ""
    lead: Line = ()

    @property
    def size(self) -> int:
        """How many rows it would show if it had room."""
        return len(self.cells) or len(self.lines)

    @property
    def above(self) -> int:
        """How many lines it needs beside its rows."""
        return 2 if self.lead else 1

    def rows(self, most: int, width: int) -> list[Row]:
        """Return its title and at most so many rows."""
        there = self.size if self.there is None else self.there
        seen = min(most, self.size)
        name = f"{self.name.upper()} {figure(there) if seen == there else f'{seen} of {figure(there)}'}{self.said}"
        lead = [Row(cut(self.lead, width))] if self.lead else []
        if not self.columns:
            return [Row((Word(name, "bold"),)), *lead, *list_pages.one_line(self.lines[:seen], width)]
        laid = table([self.columns[0]._replace(name=name), *self.columns[1:]], self.cells[:seen], width)
        first, *others = laid.head
        return [Row((Word(first.text, "bold"), *others)), *lead, *laid.rows]


class Overview(Page):
    """The whole pool on one screen."""

    name = "overview"
    about = "the whole pool on one screen"

    def gather(self, source: Source, room: Room) -> Picture:
        """Return as much of each section as has room."""
        if source.view.picture is None:
            return shown("overview", [Row((Word("reading the spool …", "mute"),))])
        first, second = _sections(source, room.width)
        if room.width < TWO_FROM:
            nodes, queue, batches = first
            alerts, asks, runs, *others = second
            order = [alerts, asks, nodes, runs, queue, *others, batches]
            return shown("overview", _fit(order, room.width, room.height))
        width = (room.width - GAP) // 2
        side = shown("", _fit(second, width, room.height))
        left = shown("overview", _fit(first, width, room.height))
        return Picture(left.title, left.rows, (), 0, left.count, "", side)


def _sections(source: Source, width: int) -> tuple[list[Section], list[Section]]:
    """Return what is on the left, and what is on the right, by their importance."""
    view, now, picture = source.view, source.now(), source.view.picture
    nodes = picture.nodes if picture is not None else ()
    counts = picture.workers if picture is not None else None
    told = "" if counts is None or not counts.dead else f", {counts.dead} dead"
    ages, runs, failed, batches = view.ages(), view.running(), view.failures(), view.batches()
    alerts = [row for row in list_pages.alert_rows(source, max(width, 400)) if row.key]
    reasons, questions = _told(source)
    first = [
        Section("nodes", list_pages.NODES_COLUMNS, [list_pages.node_cells(node) for node in nodes], said=told),
        Section("queue", list_pages.queue_columns(), list_pages.queue_cells(ages)),
        Section("batches", list_pages.BATCHES_COLUMNS, [list_pages.batch_cells(row, now) for row in batches]),
    ]
    there = picture.tasks.failed + picture.tasks.rejected if picture is not None else len(failed)
    codes = list_pages.codes_lines(source, 10_000)
    rows = [row for one in reasons for row in list_pages.reason_rows(one, 10_000)]
    second = [
        Section("alerts", lines=alerts),
        Section("asks", list_pages.ASKS_COLUMNS, [list_pages.ask_cells(one, now) for one in questions]),
        Section("running", list_pages.COLUMNS, [list_pages.cells(run, now) for run in runs]),
        Section(
            "failed",
            list_pages.FAILED_COLUMNS,
            [list_pages.failed_cells(card, now) for card in failed],
            there=max(there, len(failed)),
            lead=codes[0] if codes else (),
        ),
        Section("waiting", lines=rows),
    ]
    return first, second


def _told(source: Source) -> tuple[Sequence[Reason], Sequence[Question]]:
    """Return why tasks wait, and what people are asked, which is read from the share; what was last known of it."""
    try:
        reasons = source.last("reasons", source.view.reasons)
        return reasons, source.last("questions", source.view.questions)
    except Unavailable:
        return (), ()


def _fit(sections: Sequence[Section], width: int, height: int) -> list[Row]:
    """Return the sections that have rows, each with as many as its share of the room."""
    wanted = [section for section in sections if section.size]
    quotas = shares([section.size for section in wanted], height - sum(section.above for section in wanted))
    rows: list[Row] = []
    for section, quota in zip(wanted, quotas, strict=True):
        rows += section.rows(quota, width)
    if not rows:
        rows = [Row(cut((word("nothing runs, nothing waits, and no worker is seen", "mute"),), width))]
    return rows


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Return how many rows of each section are shown: one of each, and the rest shared in turns."""
    quotas = [min(1, size) for size in sizes]
    left = room - sum(quotas)
    while left > 0 and any(quota < size for quota, size in zip(quotas, sizes, strict=True)):
        for at, size in enumerate(sizes):
            if quotas[at] < size and left > 0:
                quotas[at] += 1
                left -= 1
    return quotas
