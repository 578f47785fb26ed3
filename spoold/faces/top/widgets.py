"""The widgets: a bar, a sheet of rows with a cursor, the box that asks before an action, the line to type in.

Law: only lines that differ from what is on the screen are drawn again, since each byte may cross a slow line. What is
drawn has passed `spoold.faces.top.text_layout.word`: no markup is read, and nothing is taken for an escape sequence.
The answer of a box is no until a person chooses another: Enter alone, and Escape, do nothing. All that a task runs
stands above the question whole, and can be scrolled.

Touches: the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from spoold.faces.top import colours
from spoold.faces.top.actions import Proposal
from spoold.faces.top.text_layout import Behind, Line, Picture, Row, Word, cut, word, wrap
from spoold.pictures import task_description
from spoold.protocol.amount import amount

# The first column of a sheet: a row that is marked, and the one under the cursor, also without colours.
MARK, HERE = "*", "›"
GUTTER = 1


class Place(NamedTuple):
    """Where the cursor of a sheet is. first: the row at the top; at: that of the cursor; key: its key."""

    first: int
    at: int
    key: str
    marks: dict[str, Behind | None]


TOP = Place(0, 0, "", {})


class Drawn(Widget):
    """Lines of words, drawn where they changed."""

    DEFAULT_CSS = "Drawn { height: 1; width: 1fr; }"

    def __init__(self, **more: str) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self._strips: list[Strip] = []
        self._said: Sequence[Line] = ()

    def say(self, *lines: Line) -> None:
        """Draw these lines."""
        self._said = lines
        self.draw()

    def draw(self) -> None:
        """Draw what has changed."""
        strips = self.strips(self.size.width, self.size.height)
        before, self._strips = self._strips, strips
        if len(before) != len(strips):
            self.refresh()
            return
        pairs = enumerate(zip(before, strips, strict=True))
        changed = [Region(0, y, changed_to(old, new), 1) for y, (old, new) in pairs if old != new]
        if changed:
            self.refresh(*changed)

    def strips(self, width: int, height: int) -> list[Strip]:
        """Return all lines, as they are to be seen."""
        return [self.strip(cut(line, width), width) for line in list(self._said)[:height]]

    def strip(self, line: Line, width: int, more: Style | None = None) -> Strip:
        """Return a line as textual takes it, as wide as the widget."""
        theme = self.app.theme
        blank = colours.style(theme, "")
        segments: list[Segment] = []
        for each in line:
            own = colours.style(theme, each.style) + (more or Style())
            before = segments[-1].style if segments else None
            if before is not None and not each.text.strip() and _alike(before, own):
                # Spaces look the same in any colour, and a change of colour takes twenty bytes.
                own = before
            segments.append(Segment(each.text, own))
        filler = blank + (more or Style())
        if segments and segments[-1].style is not None and _alike(segments[-1].style, filler):
            filler = segments[-1].style
        return Strip(segments).adjust_cell_length(width, filler).simplify()

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, colours.style(self.app.theme, ""))

    def on_resize(self) -> None:
        """Lay everything out anew."""
        self._strips = []
        self.draw()

    def repaint(self) -> None:
        """Draw everything in new colours."""
        self._strips = []
        self.draw()


def _alike(one: Style, other: Style) -> bool:
    """Return whether spaces in two styles look the same: nothing is seen of them but what is behind them."""
    drawn = any(style.underline or style.strike or style.reverse for style in (one, other))
    return not drawn and one.bgcolor == other.bgcolor


def changed_to(old: Strip, new: Strip) -> int:
    """Return up to which column a line has changed: what follows is not sent again."""
    if old.cell_length != new.cell_length:
        return max(old.cell_length, new.cell_length)
    same = 0
    for one, two in zip(reversed(list(_cells(old))), reversed(list(_cells(new))), strict=False):
        if one != two:
            break
        same += cell_len(one[0])
    return max(1, new.cell_length - same)


def _cells(strip: Strip) -> Iterator[tuple[str, Style | None]]:
    for segment in strip:
        for char in segment.text:
            yield char, segment.style


class Bar(Drawn):
    """A bar of the whole width, in one style."""

    def __init__(self, name: str, style: str = "") -> None:
        super().__init__(id=name)
        self._style = style

    def strips(self, width: int, height: int) -> list[Strip]:
        """Return the line with its style to the end of the bar."""
        lines = [cut(line, width) for line in list(self._said)[:height]]
        if not self._style:
            return [self.strip(line, width) for line in lines]
        more = colours.style(self.app.theme, self._style)
        return [self.strip(line, width, Style(bgcolor=more.bgcolor, bold=True)) for line in lines]


class Sheet(Drawn, can_focus=True):
    """The rows of a picture, with a cursor. It asks for rows that it has not, and keeps the cursor on its row."""

    DEFAULT_CSS = "Sheet { height: 1fr; width: 1fr; }"

    class Wanted(Message):
        """Other rows are to be seen."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.picture = Picture("", ())
        self.first = 0
        self.at = 0
        self.marks: dict[str, Behind | None] = {}
        self._key = ""

    @property
    def place(self) -> Place:
        """Where the cursor is, and what is marked, for a page that comes back."""
        return Place(self.first, self.at, self._key, self.marks)

    def turn(self, place: Place) -> None:
        """Go to where another page was left."""
        self.first, self.at, self._key = place.first, place.at, place.key
        self.marks = dict(place.marks)

    def show(self, picture: Picture) -> None:
        """Show a picture, with the cursor on the row where it was."""
        self.picture = picture
        if picture.at is not None:
            self.at = picture.at
            self._key = ""
        elif picture.end:
            self.at = max(0, picture.count - 1)
        elif self._key:
            found = next((number for number, row in enumerate(picture.rows) if row.key == self._key), None)
            if found is not None:
                moved = picture.begin + found - self.at
                self.at += moved
                self.first += moved if self.first else 0
        self._settle()
        if not self._key and not picture.end:
            self._to_row(1)
        self.draw()

    @property
    def lines(self) -> int:
        """How many rows have room."""
        return max(1, self.size.height - len(self.picture.head))

    def row(self) -> Row | None:
        """Return the row under the cursor; None where it is not there yet."""
        place = self.at - self.picture.begin
        return self.picture.rows[place] if 0 <= place < len(self.picture.rows) else None

    def move(self, by: int) -> None:
        """Move the cursor; past the rows that are there, more are asked for."""
        before = self.at
        self.at += by
        self._settle()
        self._to_row(1 if by > 0 else -1)
        if self.at == before and by:
            # Text without rows to stand on is scrolled.
            self.first = max(0, min(self.first + by, self.picture.count - self.lines))
        self._moved()

    def go(self, at: int) -> None:
        """Put the cursor on a row, by its number; a negative one counts from the end."""
        self.at = at if at >= 0 else self.picture.count + at
        self._settle()
        self._to_row(1 if at >= 0 else -1)
        self._moved()

    def mark(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        row = self.row()
        if row is not None and row.key and row.behind is not None:
            if row.key in self.marks:
                del self.marks[row.key]
            else:
                self.marks[row.key] = row.behind
            self.draw()

    def _moved(self) -> None:
        row = self.row()
        self._key = row.key if row is not None else ""
        begin, end = self.picture.begin, self.picture.begin + len(self.picture.rows)
        if self.first < begin or min(self.first + self.lines, self.picture.count) > end:
            self.post_message(self.Wanted())
        self.draw()

    def _settle(self) -> None:
        """Keep the cursor among the rows, and on the screen."""
        self.at = max(0, min(self.at, self.picture.count - 1))
        if self.at < self.first:
            self.first = self.at
        elif self.at >= self.first + self.lines:
            self.first = self.at - self.lines + 1
        self.first = max(0, min(self.first, self.picture.count - self.lines))
        above = self.picture.rows[: self.at] if not self.picture.begin else self.picture.rows
        if self.at < self.lines and not any(row.key for row in above):
            self.first = 0  # the title above the first row is seen with it

    def _to_row(self, step: int) -> None:
        """Move the cursor off text that is no row: on to the next row, or else back to the last."""
        for way in (step, -step):
            at = self.at
            while 0 <= (place := at - self.picture.begin) < len(self.picture.rows):
                if self.picture.rows[place].key:
                    self.at, self._key = at, self.picture.rows[place].key
                    self._settle()
                    return
                at += way

    def strips(self, width: int, height: int) -> list[Strip]:
        """Return the head, then the rows from the first that is seen."""
        laid = [self.strip((Word(" "), *cut(line, width - GUTTER)), width) for line in self.picture.head[:height]]
        for number in range(self.first, self.first + height - len(laid)):
            place = number - self.picture.begin
            if number >= self.picture.count:
                laid.append(self.strip((), width))
            elif not 0 <= place < len(self.picture.rows):
                laid.append(self.strip((Word("…", "mute"),), width))
            else:
                laid.append(self._row_strip(number, self.picture.rows[place], width))
        return laid

    def _row_strip(self, number: int, row: Row, width: int) -> Strip:
        on = number == self.at and bool(row.key)
        marked = bool(row.key) and row.key in self.marks
        sign = MARK if marked else HERE if on and self.has_focus else " "
        more = colours.cursor(self.app.theme, focused=self.has_focus) if on else None
        return self.strip((Word(sign, "alert" if marked else ""), *cut(row.line, width - GUTTER)), width, more)

    def on_resize(self) -> None:
        """Lay everything out anew; what had no room before may have some now."""
        self._settle()
        super().on_resize()

    def on_focus(self) -> None:
        """Show that the keys go here."""
        self.draw()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.draw()


# The box that says what will happen and asks whether it shall, and the line in which a person types.


class Chosen(NamedTuple):
    """What a person chose. value: of the option; typed: beside it."""

    value: str
    typed: str


class Words(Input):
    """A line to type in: plain, without blinking, since each blink would cross the network."""

    DEFAULT_CSS = (
        "Words, Words:focus { border: none; height: 1; padding: 0; background: $surface; color: $foreground; }"
    )

    def __init__(self, name: str, placeholder: str = "", suggestions: Sequence[str] = ()) -> None:
        suggester = SuggestFromList(suggestions, case_sensitive=False) if suggestions else None
        super().__init__(id=name, placeholder=placeholder, suggester=suggester, compact=True, select_on_focus=False)
        self.cursor_blink = False


class Confirm(ModalScreen[Chosen | None]):
    """The box. It answers None for no."""

    DEFAULT_CSS = """
    Confirm { align: center middle; background: transparent; }
    Confirm #box { width: 76; max-width: 95%; height: auto; border: solid $foreground; background: $surface; }
    Confirm #says { height: 3; }
    Confirm #runs { height: auto; border-bottom: solid $foreground; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "no", show=False),
        Binding("y", "yes", show=False),
        Binding("down,j,tab,right", "step(1)", show=False),
        Binding("up,k,shift+tab,left", "step(-1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
    ]

    def __init__(self, proposal: Proposal) -> None:
        super().__init__()
        self._proposal = proposal
        self._options = (("no, do nothing", ""), *proposal.options)
        self._at = 0
        self._missing = False

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Vertical(id="box"):
            if self._proposal.runs:
                with VerticalScroll(id="runs", can_focus=False):
                    yield Drawn(id="work")
            yield Drawn(id="says")
            if self._proposal.asks:
                yield Words("typed", self._proposal.asks)

    def on_mount(self) -> None:
        """Say it, and put the cursor where something is to be typed."""
        self._say()
        if self._proposal.asks:
            self.set_focus(self.query_one(Words))

    def on_resize(self) -> None:
        """Say it in the room that there is."""
        self._say()

    def _say(self) -> None:
        width = max(20, min(76, int(self.app.size.width * 0.95)) - 2)
        lines: list[Line] = wrap((word(self._proposal.title, "bold"),), width)
        for said in self._proposal.says:
            lines += wrap((word(said),), width)
        lines += self._say_work(width)
        lines.append(())
        for number, (label, _) in enumerate(self._options):
            here = number == self._at
            lines += wrap((Word("› " if here else "  ", "bold"), word(label, "match" if here else "")), width, 4)
        if self._missing:
            lines.append((Word(f"type the {self._proposal.asks} first, below", "alert"),))
        elif self._proposal.asks:
            lines.append((Word(f"{self._proposal.asks}, then enter, then choose:", "mute"),))
        drawn = self.query_one("#says", Drawn)
        drawn.styles.height = len(lines)
        drawn.say(*lines)

    def _say_work(self, width: int) -> list[Line]:
        """Draw what the task runs, above; returns what has to be said of it."""
        if not self._proposal.runs:
            return []
        rows: list[Line] = [(Word(row),) for row in task_description.drawn(self._proposal.runs, width - 1)]
        room = max(3, self.app.size.height - len(self._options) - 10)
        drawn = self.query_one("#work", Drawn)
        drawn.styles.height = len(rows)
        self.query_one("#runs").styles.max_height = room
        drawn.say(*rows)
        scrolls = "; pgdn and pgup scroll" if len(rows) > room else ""
        return wrap((Word(f"It runs what stands above, {amount(len(rows), 'line')}{scrolls}."),), width)

    def action_page(self, by: int) -> None:
        """Scroll what the task runs."""
        for runs in self.query("#runs"):
            (runs.scroll_page_down if by > 0 else runs.scroll_page_up)(animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on to the options."""
        event.stop()
        self.set_focus(None)

    def action_step(self, by: int) -> None:
        """Go to the next option."""
        self.set_focus(None)
        self._at = (self._at + by) % len(self._options)
        self._say()

    def action_no(self) -> None:
        """Do nothing."""
        self.dismiss(None)

    def action_yes(self) -> None:
        """Choose yes, where it is the only other option."""
        if len(self._options) == 2:
            self._at = 1
            self.action_choose()

    def action_choose(self) -> None:
        """Choose the option under the cursor."""
        if not self._at:
            self.dismiss(None)
            return
        typed = self.query_one(Words).value.strip() if self._proposal.asks else ""
        self._missing = self._proposal.must and not typed
        if self._missing:
            self._say()
            self.set_focus(self.query_one(Words))
            return
        self.dismiss(Chosen(self._options[self._at][1], typed))


class Prompt(Words):
    """The line at the bottom: a filter after `/`, a command after `:`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("tab", "complete", show=False),
    ]

    class Left(Message):
        """Nothing is wanted after all."""

    def action_leave(self) -> None:
        """Type nothing after all."""
        self.post_message(self.Left())

    def action_complete(self) -> None:
        """Take what is suggested."""
        self.action_cursor_right()
