"""The box that says what will happen and asks whether it shall, and the line in which a person types.

Law: the answer is no until a person chooses another: Enter alone, and Escape, do nothing. All that a task runs stands
above the question whole, and can be scrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input

from spoold.faces.top.acts import Proposal
from spoold.faces.top.lines import Line, Word, word, wrap
from spoold.faces.top.sheet import Drawn
from spoold.pictures import task_description
from spoold.protocol.amount import amount


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
