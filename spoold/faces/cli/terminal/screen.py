"""A picture for people as blocks, lines of text and tables, and the blocks as lines of a terminal or of a file.

Law: plain text is laid out here, character by character, which starts faster than rich. Rich lays out text that is
too wide, has characters of other widths, or is watched. Both look the same, and a test holds them so.


Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spoold.faces.cli.terminal.output import print_exactly, stacks, width, within

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

# Wide for a file or a pipe, which has no width: a wrapped table cannot be searched.
_FILE_COLUMNS = 200
_CODES = {"red": "31", "green": "32", "cyan": "36", "yellow": "33", "dim": "2", "bold": "1"}
# With one of these a person sets colours or the terminal, and rich obeys them.
_SAID = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS")
_GAP = "  "


class Line(NamedTuple):
    """One line, or a cell of a table: any text, with one of the styles of `_CODES` or none."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """Columns under a heading."""

    header: Sequence[str]
    rows: Sequence[Sequence[Line]]


Block = Line | Table


def show(blocks: Sequence[Block]) -> None:
    """Print the blocks: tables where there is room for them, else each row as lines `field: value`."""
    seen = width()
    columns = _FILE_COLUMNS if seen is None else seen
    plain = None
    if not any(name in os.environ for name in _SAID) and os.environ.get("TERM", "").lower() not in (
        "dumb",
        "unknown",
    ):
        plain = None if stacks(seen) else lines(blocks, columns, styled=seen is not None)
    for line in _by_rich(blocks) if plain is None else plain:
        print_exactly(line.rstrip())


def lines(blocks: Sequence[Block], columns: int, *, styled: bool) -> list[str] | None:
    """Return the blocks laid out; None where a line is longer than `columns`, or has a character beyond ASCII."""
    laid: list[str] = []
    for block in blocks:
        rows = [[block]] if isinstance(block, Line) else [[Line(name, "bold") for name in block.header], *block.rows]
        cells = [[Line(within(cell.text), cell.style) for cell in row] for row in rows]
        widths = [max(len(row[at].text) for row in cells) for at in range(len(cells[0]))]
        if sum(widths) + len(_GAP) * (len(widths) - 1) > columns:
            return None
        if not all(cell.text.isascii() for row in cells for cell in row):
            return None
        laid += [_GAP.join(_padded(*pair, styled) for pair in zip(row, widths, strict=True)) for row in cells]
    return laid


def _padded(cell: Line, size: int, styled: bool) -> str:
    code = _CODES.get(cell.style, "") if styled else ""
    text = f"\x1b[{code}m{cell.text}\x1b[0m" if code and cell.text else cell.text
    return text + " " * (size - len(cell.text))


def _by_rich(blocks: Sequence[Block]) -> list[str]:
    from rich.console import Console

    console = Console() if Console().is_terminal else Console(width=_FILE_COLUMNS)
    with console.capture() as captured:
        console.print(renderable(blocks, narrow=console.is_terminal and stacks(console.width)), crop=False)
    return captured.get().splitlines()


def renderable(blocks: Sequence[Block], *, narrow: bool = False) -> RenderableType:
    """Return the blocks for rich. narrow: there is no room for tables."""
    from rich.console import Group

    return Group(*(_table(block, narrow=narrow) if isinstance(block, Table) else _text(block) for block in blocks))


def _text(line: Line) -> Text:
    """Return the line as rich's Text: rich lets escapes pass, and takes brackets in a str for its own markup."""
    from rich.text import Text

    # A word that is longer than a line is an id or a path: unbroken, it can be copied.
    return Text(within(line.text), style=line.style, overflow="ignore")


def _table(block: Table, *, narrow: bool) -> RenderableType:
    from rich.console import Group
    from rich.table import Table as RichTable

    if narrow:
        return Group(*_stacked(block))
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in block.header:
        table.add_column(_text(Line(name)), no_wrap=True)
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _stacked(block: Table) -> Iterator[Text]:
    for number, row in enumerate(block.rows):
        if number:
            yield _text(Line(""))
        for name, cell in zip(block.header, row, strict=False):
            yield _text(Line(f"{name.lower()}: ")).append_text(_text(cell))


def watch(blocks: Iterator[Sequence[Block]]) -> None:
    """Show each picture in the place of the one before, until interrupted."""
    from rich.live import Live

    def shown() -> RenderableType:
        return renderable(next(blocks), narrow=stacks(width()))

    with Live(shown(), auto_refresh=False, screen=True) as live:
        while True:
            live.update(shown(), refresh=True)
