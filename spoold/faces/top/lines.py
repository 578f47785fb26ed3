"""What a page shows: lines of words, each with the name of a style, and what stands behind a line.

Law: values only. Text of other people is made visible where a `Word` is made of it, by `word`; nothing else does.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from spoold.pictures.palette import GLYPHS
from spoold.pictures.wording import visible

# What stands behind a row: a task, or what another page lists.
TASK, NODE, TYPE, BATCH, LIMIT, QUESTION, REASON = "task", "node", "type", "batch", "limit", "question", "reason"


class Word(NamedTuple):
    """Some text in one style. The styles: '', mute, bold, alert, title, ok, low, and `state:NAME`."""

    text: str
    style: str = ""


Line = tuple[Word, ...]


def word(text: object, style: str = "", most: int = 4000) -> Word:
    """Return text of other people on one line, with what cannot be seen as escapes, and no longer than `most`."""
    shown = visible(" ".join(str(text).split(" ")))
    return Word(shown if len(shown) <= most else f"{shown[: most - 1]}…", style)


def state(name: str) -> Word:
    """Return a state as its sign and its name, in its colour."""
    return Word(f"{GLYPHS.get(name, '?')} {visible(name)}", f"state:{name}")


@dataclass(frozen=True, slots=True)
class Behind:
    """What Enter opens and actions are about. kind: one of the words above; id: its name; more: what an action needs.

    The id of a question is that of its task; `more` has the name of the question and its choices.
    """

    kind: str
    id: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line that the cursor can stand on. key: what stays the same when the row moves; '' for text alone."""

    line: Line
    key: str = ""
    behind: Behind | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """What a page shows now. rows: those from `begin` on, of `count`; head: lines that stay at the top.

    note: what the title says of how much is shown; side: a second column, where there is room for one; end: whether
    the last row is to be seen, as in a log that is followed. at: the row that is to be seen, None for any.
    """

    title: str
    rows: Sequence[Row]
    head: Sequence[Line] = ()
    begin: int = 0
    count: int = 0
    note: str = ""
    side: Picture | None = None
    end: bool = False
    at: int | None = None
    marked: frozenset[str] = field(default_factory=frozenset)


def shown(title: str, rows: Sequence[Row], head: Sequence[Line] = (), *, note: str = "") -> Picture:
    """Return a picture whose rows are all there."""
    return Picture(title, rows, head, 0, len(rows), note)


def width_of(line: Line) -> int:
    """Return how many columns of the terminal a line takes."""
    return sum(cell_len(each.text) for each in line)


def text_of(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(each.text for each in line)


def clip(text: str, width: int) -> str:
    """Return the text in at most so many columns; what is cut ends with …."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def cut(line: Line, width: int) -> Line:
    """Return the line in at most so many columns; what is cut ends with …."""
    if width_of(line) <= width:
        return line
    kept: list[Word] = []
    left = width
    for each in line:
        size = cell_len(each.text)
        if size >= left:
            kept.append(Word(clip(f"{each.text}  ", left), each.style))
            break
        kept.append(each)
        left -= size
    return tuple(kept)


def wrap(line: Line, width: int, indent: int = 0) -> list[Line]:
    """Return a line as several of at most so many columns, broken between words where there are some.

    indent: of those after the first.
    """
    lines: list[list[Word]] = [[]]
    left = width = max(width, indent + 4)
    for each in line:
        for piece in _pieces(each.text, width - indent):
            size = cell_len(piece)
            if size > left and (left < width - indent or lines[-1:] == [[]]) and piece.strip():
                lines.append([Word(" " * indent)] if indent else [])
                left = width - indent
            if piece.isspace() and size > left:
                continue
            lines[-1].append(Word(piece, each.style))
            left -= size
    return [_joined(words) for words in lines]


def _pieces(text: str, width: int) -> list[str]:
    """Return the words of a text and the room between them; one that is longer than a line is broken."""
    pieces: list[str] = []
    for number, piece in enumerate(text.split(" ")):
        if number:
            pieces.append(" ")
        if piece:
            pieces += [piece] if cell_len(piece) <= width else chop_cells(piece, width)
    return pieces


def _joined(words: Sequence[Word]) -> Line:
    found: list[Word] = []
    for each in words:
        if found and found[-1].style == each.style:
            found[-1] = Word(found[-1].text + each.text, each.style)
        else:
            found.append(each)
    return tuple(found)
