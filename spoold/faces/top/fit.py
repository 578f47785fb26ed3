"""Tables in a given number of columns: which of their columns have room, and how wide each is.

Law: a cell that is cut ends with …, and a heading that has no room is counted, so that nothing is missing unseen.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from spoold.faces.top.lines import Behind, Line, Row, Word, clip, cut

GAP = 2


class Column(NamedTuple):
    """A heading. least: the columns that it needs; most: those that help; rank: the highest goes first for want of
    room; right: for numbers.
    """

    name: str
    least: int
    most: int
    rank: int = 0
    right: bool = False


class Cells(NamedTuple):
    """A row before it is laid out."""

    words: Sequence[Word]
    key: str = ""
    behind: Behind | None = None


class Table(NamedTuple):
    """A table, laid out. hidden: the headings that had no room."""

    head: Line
    rows: list[Row]
    hidden: tuple[str, ...]

    @property
    def note(self) -> str:
        """A few words on the columns that are not shown; '' where all are."""
        return f"no room for {', '.join(self.hidden).lower()}" if self.hidden else ""


def table(columns: Sequence[Column], rows: Sequence[Cells], width: int) -> Table:
    """Lay a table out in so many columns of the terminal."""
    used = [max([cell_len(row.words[at].text) for row in rows], default=0) for at in range(len(columns))]
    kept = _kept(columns, width)
    sizes = _sizes([columns[at] for at in kept], [used[at] for at in kept], width)
    heads = [Word(columns[at].name, "mute") for at in kept]
    names = [columns[at] for at in kept]
    laid = [Row(_line(names, [row.words[at] for at in kept], sizes), row.key, row.behind) for row in rows]
    hidden = tuple(column.name for at, column in enumerate(columns) if at not in kept and column.name)
    return Table(_line(names, heads, sizes), laid, hidden)


def _kept(columns: Sequence[Column], width: int) -> list[int]:
    """Return the columns that have room, by their places; the first always has."""
    kept = list(range(len(columns)))
    while len(kept) > 1 and sum(columns[at].least for at in kept) + GAP * (len(kept) - 1) > width:
        kept.remove(max(kept, key=lambda at: (columns[at].rank, at)))
    return kept


def _sizes(columns: Sequence[Column], used: Sequence[int], width: int) -> list[int]:
    """Return how wide each column is: as its cells need, within its bounds, and all of them within the width."""
    wanted = [
        max(len(column.name), column.least, min(column.most, size))
        for column, size in zip(columns, used, strict=True)
    ]
    sizes = [min(column.least, want) for column, want in zip(columns, wanted, strict=True)]
    left = width - GAP * (len(columns) - 1) - sum(sizes)
    while left > 0 and sizes != wanted:
        # A column at a time, the one that lacks most: names share what is left fairly.
        at = max(range(len(sizes)), key=lambda at: wanted[at] - sizes[at])
        sizes[at] += 1
        left -= 1
    return sizes


def _line(columns: Sequence[Column], words: Sequence[Word], sizes: Sequence[int]) -> Line:
    found: list[Word] = []
    for number, (column, each, size) in enumerate(zip(columns, words, sizes, strict=True)):
        text = clip(each.text, size)
        room = " " * (size - cell_len(text))
        gap = " " * GAP if number else ""
        if column.right:
            found += [Word(gap + room), Word(text, each.style)]
        else:
            found += [Word(gap), Word(text, each.style), Word(room)]
    return cut(tuple(each for each in found if each.text), sum(sizes) + GAP * (len(sizes) - 1))
