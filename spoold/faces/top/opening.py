"""Opens the application on a terminal, or draws one of its views into an SVG without one.

Law: a thread that hangs in a share that is gone keeps nobody from leaving.

Touches: the clock, the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.widgets import Input

from spoold.faces.top import acts, colours, views
from spoold.faces.top.aside import aside
from spoold.faces.top.asking import Chosen, Confirm
from spoold.faces.top.keys import ACTIONS, DIGITS, KEYS, digit
from spoold.faces.top.lines import BATCH, LIMIT, NODE, QUESTION, TASK, TYPE, Behind
from spoold.faces.top.paged import PagedApp, WaitFor
from spoold.faces.top.pages.batch import OneBatch
from spoold.faces.top.pages.history import History
from spoold.faces.top.pages.lists import opened
from spoold.faces.top.pages.log import Log
from spoold.faces.top.pages.notices import Events
from spoold.faces.top.pages.task import Task
from spoold.faces.top.pages.tasks import Tasks
from spoold.faces.top.sheet import TOP
from spoold.faces.top.source import Source
from spoold.protocol.amount import amount
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.faces.top.pages.page import Page


# For a view that is drawn into a file.
PATIENCE_S = 60.0


def run(spool: SpoolClient, *, read_only: bool, colour: str) -> None:
    """Show the spool until a person quits."""
    from spoold.client.view import Watch

    view = spool.view()
    with Watch(view, alone=True) as watch:
        app = TopApp(Source(view, spool, time.time, read_only), watch.wait, colour=colour_of(colour))
        asyncio.run(_shown(app))
    if app.return_code:
        raise SystemExit(app.return_code)


async def _shown(app: TopApp) -> None:
    """Show the application until it ends; a signal to end leaves the terminal as it was, too."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, partial(app.exit, return_code=128 + number))
    # Without the mouse a terminal selects text as always, and no movement crosses the network.
    await app.run_async(mouse=False)


def colour_of(wanted: str) -> str:
    """Return dark, light, or '' for no colours: as wanted, else as the environment says."""
    if os.environ.get("NO_COLOR"):
        return ""
    if wanted != "auto":
        return wanted
    # Some terminals say which colour is behind their text: 7 and 15 are white.
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in ("7", "15") else "dark"


async def svg_of(source: Source, wait: WaitFor, view: str, *, size: tuple[int, int], colour: str = "dark") -> str:
    """Return a view as SVG, drawn without a terminal. view: a command, such as `tasks state:failed`."""
    name, _, argument = view.partition(" ")
    page = views.page_of(name, argument)
    if isinstance(page, str):
        raise ValueError(page)
    app = TopApp(source, wait, colour=colour, start=page)
    async with app.run_test(size=size) as pilot:
        await asyncio.wait_for(app.seen.wait(), PATIENCE_S)
        await pilot.pause()
        return app.export_screenshot(title="spool top")


# The application, with its keys and commands: moving, opening, and the actions that a person confirms.


_OF_TASK: dict[str, Callable[[str], Page]] = {"details": Task, "log": Log, "history": History, "events": Events}
_MOVES = {"down": 1, "up": -1}
_KIND_OF = {"pause": TYPE, "resume": TYPE, "drain": NODE, "undrain": NODE}


class TopApp(PagedApp):
    """`spool top`. colour: '' for none, or `dark`, `light`."""

    # With priority each key is taken by the application itself, one after the other. Else those that arrive together
    # would be on their way to a widget, while the first of them has opened a line to type in.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", show=False, priority=True),
        *(Binding(key.keys, f"press('{key.does}')", show=False, priority=True) for key in KEYS),
        *(Binding(digit(name), f"view('{name}')", show=False, priority=True) for name in DIGITS),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is one of the application now: not while a person types, and not while a box asks."""
        if action not in ("press", "view"):
            return True
        if isinstance(self.focused, Input) or len(self.screen_stack) > 1:
            return False
        return not (self.source.read_only and parameters[:1] and parameters[0] in ACTIONS)

    def action_press(self, does: str) -> None:
        """Do what a key stands for."""
        if does in ACTIONS:
            self.act(does, self.meant())
        elif self.page.press(does, self.main.at):
            self.look()
        else:
            self.press(does)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        typed = event.value.strip()
        self.close_prompt()
        if self.typing == "/":
            self.page.filter(typed)
            if self.page.name != "log":
                self.main.turn(TOP)
            self.page.press("next", self.main.at)
            self.look()
        elif typed:
            self.command(typed)

    def press(self, does: str) -> None:
        """Do what a key stands for that is no action and of no single page."""
        sheet = self.sheet
        if does in _MOVES:
            sheet.move(_MOVES[does])
        elif does in ("page_down", "page_up"):
            sheet.move(sheet.lines * (1 if does == "page_down" else -1))
        elif does in ("first", "last"):
            sheet.go(0 if does == "first" else -1)
        elif does == "mark":
            sheet.mark()
            sheet.move(1)
        elif does in _OF_TASK:
            self.open_task(does)
        else:
            self._press_more(does)
            return
        self.page.moved(self.main.at, self.main.picture.count)
        self.draw_bars()

    def _press_more(self, does: str) -> None:
        match does:
            case "open":
                self.open()
            case "back":
                self.take_back()
            case "filter":
                self.ask("/", self.page.typed)
            case "command":
                self.ask(":", suggester=self._suggester())
            case "help":
                self.action_view("help")
            case "other":
                (self.main if self.sheet is self.side else self.side).focus()
            case "mark_all":
                self.run_worker(self._mark_all())
            case "theme":
                light = self.theme == colours.DARK_NAME
                self.recolour(colours.LIGHT_NAME if light else colours.DARK_NAME)
            case "quit":
                self.exit()

    def recolour(self, theme: str) -> None:
        """Take other colours; a screen without colours stays so."""
        if self.theme != colours.PLAIN_NAME:
            self.theme = theme
            for name in ("pool", "problem", "title", "main", "side", "hints"):
                self.bar(name).repaint()

    def open(self) -> None:
        """Open what is under the cursor."""
        row = self.sheet.row()
        behind = row.behind if row is not None else None
        if behind is None:
            return
        if behind.kind in (TASK, QUESTION):
            if not (self.page.name == "task" and self.page.subject == Behind(TASK, behind.id)):
                self.go(Task(behind.id))
        elif behind.kind == BATCH:
            self.go(OneBatch(behind.id))
        elif behind.kind == LIMIT:
            self.say(f"`spool limits` says more of {behind.id}")
        elif (page := opened(behind)) is not None:
            self.go(page)

    def open_task(self, does: str) -> None:
        """Open a page of the task that is meant."""
        behind = self.meant()[:1]
        if behind and behind[0].kind in (TASK, QUESTION):
            self.go(_OF_TASK[does](behind[0].id))
        elif behind and behind[0].kind == BATCH and does == "details":
            self.go(Tasks(f"batch:{behind[0].id}"))
        else:
            self.say("put the cursor on a task first")

    def take_back(self) -> None:
        """Take back the marks, else the filter, else the page."""
        if self.main.marks:
            self.main.marks = {}
            self.main.draw()
            self.draw_bars()
        elif self.page.typed and len(self.pages) == 1:
            self.page.filter("")
            self.look()
        else:
            self.back()

    async def _mark_all(self) -> None:
        """Mark all tasks that the filter leaves, also those that are not seen."""
        if not isinstance(self.page, Tasks):
            self.main.marks = {row.key: row.behind for row in self.main.picture.rows if row.key and row.behind}
        else:
            page = self.page
            found = await aside(lambda: self.source.view.keys(page.query))
            if page is not self.page:
                return
            self.main.marks = {one: Behind(TASK, one) for one in found}
        self.main.draw()
        self.say(f"{amount(len(self.main.marks), 'row')} marked; esc takes the marks back")

    def meant(self) -> list[Behind]:
        """Return what an action is about: the marked rows, else the one under the cursor, else the page's subject."""
        if self.main.marks:
            return [behind for behind in self.main.marks.values() if behind is not None]
        row = self.sheet.row()
        if row is not None and row.behind is not None:
            return [row.behind]
        return [self.page.subject] if self.page.subject is not None else []

    def command(self, typed: str) -> None:
        """Do what a person typed after `:`."""
        name, _, argument = typed.partition(" ")
        argument = argument.strip()
        allowed = () if self.source.read_only else ACTIONS
        names = (*views.VIEWS, *views.OF_ONE, *allowed, "quit", "dark", "light")
        meant = views.named(name.lower(), names)
        if name == "q" or meant == "quit":
            self.exit()
        elif meant in ("dark", "light"):
            self.recolour(colours.DARK_NAME if meant == "dark" else colours.LIGHT_NAME)
        elif meant in allowed:
            behind = (
                [Behind(_KIND_OF.get(meant, TASK), one) for one in argument.split()] if argument else self.meant()
            )
            self.act(meant, behind)
        elif meant:
            page = views.page_of(meant, argument)
            if isinstance(page, str):
                self.say(page, "alert")
            else:
                self.go(page, root=not argument and meant != "help")
        elif name in {key.does for key in KEYS if key.acts}:
            self.say(f"`{name}` is left out by --read-only", "alert")
        else:
            self.say(f"no view or action is called {name!r}; `?` lists them", "alert")

    def _suggester(self) -> SuggestFromList:
        """Return what completes a command."""
        allowed = () if self.source.read_only else ACTIONS
        return SuggestFromList((*views.VIEWS, *views.OF_ONE, *allowed, "quit"), case_sensitive=False)

    def act(self, action: str, behind: Sequence[Behind]) -> None:
        """Propose an action, and do it after a yes."""
        self.run_worker(self._act(action, behind), group="act")

    async def _act(self, action: str, behind: Sequence[Behind]) -> None:
        try:
            proposal = await aside(partial(acts.propose, self.source, action, behind))
        except SpoolError as error:
            self.say(str(error), "alert")
            return
        chosen: Chosen | None = await self.push_screen_wait(Confirm(proposal))
        if chosen is None:
            self.say("nothing was done", "mute")
            return
        self.say(f"{proposal.done.partition(';')[0]} …", "mute")
        try:
            await aside(partial(proposal.run, chosen.value, chosen.typed))
        except SpoolError as error:
            self.say(str(error), "alert")
            return
        self.main.marks = {}
        self.say(proposal.done, "ok")
        self.look()
