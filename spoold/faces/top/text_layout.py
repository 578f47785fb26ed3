"""What a page shows: lines of words with styles, tables that fit the columns, ages and amounts in few columns.

Over a slow line each change costs bytes, so figures change seldom: an age has one unit from a minute on.

Law: values only. Text of other people is made visible where a `Word` is made of it, by `word`; nothing else does. A
cell that is cut ends with …, and a heading that has no room is counted, so that nothing is missing unseen.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from spoold.pictures.palette import GLYPHS
from spoold.pictures.wording import visible
from spoold.protocol.amount import amount, figure, precise
from spoold.protocol.lifecycle import SHOWN

if TYPE_CHECKING:
    from spoold.protocol.result import Total


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


# Tables in a given number of columns: which of their columns have room, and how wide each is.


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


# Ages, shares and amounts in few columns, which change seldom: over a slow line each change costs bytes.


_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))
# A bar as text, so that it can be read without colours.
_FULL, _EMPTY = "█", "░"


def age(seconds: float | None) -> str:
    """Return a length of time in its largest unit: 47s, 12m, 3h, 5d; `-` where nobody knows it."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{figure(whole // size)}{unit}"
    return f"{whole}s"


def since(moment: float | None, now: float) -> str:
    """Return how long ago a moment was."""
    return age(None if moment is None else now - moment)


def moment(stamp: str) -> float | None:
    """Return the moment (s since 1970) of a stamp; None for one that is no moment, or has no zone."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None else None


def bar(used: float, most: float, width: int) -> Line:
    """Return how much of something is used as a bar of so many columns; more than all of it fills the bar."""
    part = min(1.0, max(0.0, used / most)) if most > 0 else 0.0
    full = round(part * width)
    if used > 0 and not full:
        full = 1
    style = "alert" if part > 0.9 else "bar"
    return tuple(each for each in (Word(_FULL * full, style), Word(_EMPTY * (width - full), "mute")) if each.text)


def stack(counts: Mapping[str, int], width: int) -> Line:
    """Return how many of each state there are as a bar, a piece for each state, with its sign in it."""
    total = sum(counts.values())
    if not total:
        return (Word(_EMPTY * width, "mute"),)
    found: list[Word] = []
    done, columns = 0, 0
    for name in ("completed", "skipped", "failed", "rejected", "claimed", "ready", "waiting", "pending"):
        count = counts.get(name, 0)
        done += count
        size = round(done / total * width) - columns
        columns += size
        if size:
            found.append(Word(GLYPHS[name] * size, f"state:{name}"))
    return tuple(found)


def counts_line(counts: Mapping[str, int], *, every: bool = False) -> Line:
    """Return how many tasks are in each state, those with none left out unless `every`."""
    found: list[Word] = []
    for one in SHOWN:
        count = counts.get(one.value, 0)
        if count or every:
            style = f"state:{one.value}" if count else "mute"
            found += [Word("  " if found else ""), Word(f"{GLYPHS[one.value]} {figure(count)} {one.value}", style)]
    return tuple(found)


def memory(mebibytes: float) -> str:
    """Return an amount of memory, in GiB."""
    gibibytes = mebibytes / 1024
    return f"{gibibytes:.0f}G" if gibibytes >= 10 else f"{gibibytes:.1f}G"


def short(number: float | None) -> str:
    """Return a number in few columns: 950, 12k, 3.4M; '' for none."""
    if number is None:
        return ""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 10 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0f}"


def money(usd: float | None) -> str:
    """Return an amount in USD; '' for none."""
    return "" if usd is None else f"${usd:.2f}"


def summed(total: Total) -> str:
    """Return the sums of some attempts, as far as they are known."""
    parts = [amount(total.attempts, "attempt"), precise(total.duration_s)]
    if total.tokens_used:
        parts.append(amount(round(total.tokens_used), "token"))
    if total.cost_usd:
        parts.append(money(total.cost_usd))
    return ", ".join(parts)


def progress(value: Any) -> Word:
    """Return what a task says of its progress, on one line: its share, and its words."""
    if isinstance(value, bool) or value is None:
        return Word("")
    if isinstance(value, int | float):
        return Word(f"{100 * value:.0f} %" if 0 <= value <= 1 else f"{value:g}")
    if isinstance(value, str):
        return word(value, most=400)
    if not isinstance(value, Mapping):
        return word(value, most=400)
    said = {str(name): one for name, one in value.items() if name not in ("tokens_used", "cost_usd")}
    parts = [text for name in ("message", "text", "step") if isinstance(text := said.pop(name, None), str)]
    rest = [f"{name}={one}" for name, one in said.items() if not isinstance(one, Mapping | list)]
    return word(" ".join([*parts, *rest]), most=400)
