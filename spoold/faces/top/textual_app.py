"""The application: a stack of pages, its keys and commands; opened on a terminal, or drawn into an SVG without one.

Law: nothing that may block runs in the loop: the view is waited for, pages are gathered and actions run in threads,
and one that hangs in a share that is gone keeps nobody from leaving. A page is gathered at most once a second, and
only while it is seen. The screen changes where the page has changed.

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

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.suggester import Suggester, SuggestFromList
from textual.widgets import Input

from spoold.faces.top import actions, colours, views
from spoold.faces.top.batch_page import OneBatch
from spoold.faces.top.list_pages import Events, opened
from spoold.faces.top.log_page import Log
from spoold.faces.top.page import Page
from spoold.faces.top.source import Room, Source, aside
from spoold.faces.top.task_page import History, TaskPage
from spoold.faces.top.tasks_page import Tasks
from spoold.faces.top.text_layout import (
    BATCH,
    LIMIT,
    NODE,
    QUESTION,
    TASK,
    TYPE,
    Behind,
    Line,
    Picture,
    Row,
    Word,
    age,
    clip,
    cut,
    width_of,
    word,
    wrap,
)
from spoold.faces.top.views import ACTIONS, DIGITS, KEYS, digit
from spoold.faces.top.widgets import GUTTER, TOP, Bar, Chosen, Confirm, Drawn, Prompt, Sheet
from spoold.pictures.palette import GLYPHS
from spoold.protocol.amount import amount, figure
from spoold.protocol.errors import SpoolError

if TYPE_CHECKING:
    from spoold.client.spool_client import SpoolClient
    from spoold.client.view import View
    from spoold.protocol.snapshot import Snapshot


# Pages on a stack, of which the last is seen, kept up to date: what the application is without its keys.


# At most one refresh in so many seconds, and no more than this share of the time is spent on gathering.
EVERY_S = 1.0
_BUSY = 0.2
_SAID_S = 8.0
# Waits until the version of the view is another, or some seconds are over; returns the version.
WaitFor = Callable[[int, float], int]


class PagedApp(App[None]):
    """The screen. colour: '' for none, or `dark`, `light`. seen: set once the page that is seen was gathered."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layers: base; background: $background; }
    #body { height: 1fr; }
    #side { display: none; margin-left: 1; }
    #problem { display: none; }
    #prompt { display: none; }
    """

    def __init__(self, source: Source, wait: WaitFor, *, colour: str = "dark", start: Page | None = None) -> None:
        super().__init__()
        self.animation_level = "none"
        for theme in colours.themes():
            self.register_theme(theme)
        self.theme = {"dark": colours.DARK_NAME, "light": colours.LIGHT_NAME}.get(colour, colours.PLAIN_NAME)
        self.source = source
        self._wait = wait
        self.pages: list[Page] = [start or views.VIEWS["overview"]()]
        self._said: tuple[Word, ...] = ()
        self._said_until = 0.0
        self.typing = ""
        self.seen = asyncio.Event()

    # What is on the screen.

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield Bar("pool")
        yield Bar("problem")
        yield Bar("title", "title")
        with Horizontal(id="body"):
            yield Sheet("main")
            yield Sheet("side")
        yield Bar("hints")
        yield Prompt("prompt")

    @property
    def page(self) -> Page:
        """The page that is seen."""
        return self.pages[-1]

    @property
    def main(self) -> Sheet:
        """The sheet of the page."""
        return self.screen_stack[0].query_one("#main", Sheet)

    @property
    def side(self) -> Sheet:
        """The second column."""
        return self.screen_stack[0].query_one("#side", Sheet)

    @property
    def sheet(self) -> Sheet:
        """The column where the keys go."""
        return self.side if self.side.display and self.side.has_focus else self.main

    def bar(self, name: str) -> Drawn:
        """Return a bar or a sheet by its name."""
        return self.screen_stack[0].query_one(f"#{name}", Drawn)

    def on_mount(self) -> None:
        """Begin to follow the spool."""
        self.main.focus()
        self.draw_bars()
        self.run_worker(self._follow(), group="follow")

    @property
    def drawn(self) -> bool:
        """Whether there is a screen: at the end, what was asked aside may arrive when there is none any more."""
        return bool(self.screen_stack) and bool(self.screen_stack[0].query("#side")) and self.is_running

    def draw_bars(self) -> None:
        """Draw the lines around the page."""
        if not self.drawn:
            return
        view, now, width = self.source.view, self.source.now(), self.size.width
        self.bar("pool").say(pool_bar(view, now, width))
        problem, bar = problem_bar(view, now, width), self.bar("problem")
        if len(problem) != (bar.size.height if bar.display else 0):
            bar.display = bool(problem)
            bar.styles.height = max(1, len(problem))
        bar.say(*problem)
        trail = [page.picture.title if page.picture else page.name for page in self.pages[-3:]]
        note = self.page.picture.note if self.page.picture else "…"
        marks = len(self.main.marks)
        self.bar("title").say(title_bar(trail, self.page.typed, note, marks, width))
        if self._said and time.monotonic() > self._said_until:
            self._said = ()
        hints = hints_bar(read_only=self.source.read_only, width=width)
        self.bar("hints").say(self._said or hints)

    def say(self, text: str, style: str = "bold") -> None:
        """Tell a person something, for a while."""
        self._said, self._said_until = (Word(" "), word(text, style)), time.monotonic() + _SAID_S
        self.draw_bars()

    # How it is kept up to date.

    async def _follow(self) -> None:
        """Look at the page again when the view has changed, at most once in EVERY_S."""
        version = -1
        while True:
            began = time.monotonic()
            version = await aside(partial(self._wait, version, EVERY_S))
            if not self.drawn:
                return
            self._tick(version)
            await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))

    def _tick(self, version: int) -> None:
        page, now = self.page, time.monotonic()
        self.draw_bars()
        rested = now - page.gathered >= max(EVERY_S * 0.9, page.took / _BUSY)
        due = now - page.gathered >= page.every_s or (page.version != version and not page.share)
        if rested and due:
            self.look(version)

    def look(self, version: int | None = None) -> None:
        """Gather the page that is seen."""
        self.run_worker(self._gather(self.page, self.source.view.version if version is None else version))

    async def _gather(self, page: Page, version: int) -> None:
        room = Room(max(20, self.size.width - GUTTER), max(3, self.main.size.height), self.main.first)
        page.version, page.gathered = version, time.monotonic()
        await page.flight.run(partial(self._timed, page, room), partial(self._arrived, page))

    def _timed(self, page: Page, room: Room) -> Picture:
        began = time.monotonic()
        try:
            return page.gather(self.source, room)
        finally:
            page.took = time.monotonic() - began

    def _arrived(self, page: Page, found: Picture | Exception) -> None:
        """Show what was gathered, if the page is still the one that is seen."""
        if not self.drawn:
            return
        if isinstance(found, Exception):
            if not isinstance(found, SpoolError):
                raise found
            if page is self.page:
                self.say(str(found), "alert")
            return
        page.picture = found
        if page is self.page:
            self.show()
            self.seen.set()

    def show(self) -> None:
        """Show the picture of the page that is seen, as it was gathered last."""
        picture = self.page.picture or Picture("", (Row((Word("reading …", "mute"),)),), count=1)
        if self.side.display != (picture.side is not None):
            self.side.display = picture.side is not None
            self.main.focus()
        self.main.show(picture)
        if picture.side is not None:
            self.side.show(picture.side)
        self.draw_bars()

    # Where one goes.

    def go(self, page: Page, *, root: bool = False) -> None:
        """Go to another page; root: the way back leads to the overview."""
        self.page.place = self.main.place
        above = [] if page.name == "overview" else [self._first()]
        self.pages = [*above, page] if root else [*self.pages, page]
        self.main.turn(TOP)
        self.side.turn(TOP)
        self.seen.clear()
        self.show()
        self.look()

    def _first(self) -> Page:
        """Return the page to which each way back leads."""
        return self.pages[0] if self.pages[0].name == "overview" else views.VIEWS["overview"]()

    def back(self) -> None:
        """Go back to the page before, as it was left."""
        if len(self.pages) == 1:
            if self.page.name != "overview":
                self.go(views.VIEWS["overview"](), root=True)
            return
        self.pages.pop()
        self.main.turn(self.page.place or TOP)
        self.seen.clear()
        self.show()
        self.look()

    def action_view(self, name: str) -> None:
        """Go to a view by its name."""
        self.go(views.VIEWS[name](), root=name != "help")

    # What a person types.

    def ask(self, typing: str, value: str = "", suggester: Suggester | None = None) -> None:
        """Open the line at the bottom. typing: `/` or `:`."""
        self.typing = typing
        prompt = self.query_one(Prompt)
        prompt.placeholder = "filter" if typing == "/" else "view or action"
        prompt.suggester = suggester
        prompt.value = value
        prompt.display, self.bar("hints").display = True, False
        # At once, and not with the next message: over a slow line the keys of a whole word arrive together.
        self.screen.set_focus(prompt)
        prompt.cursor_position = len(value)

    def on_prompt_left(self) -> None:
        """Close the line."""
        self.close_prompt()

    def close_prompt(self) -> None:
        """Give the room of the line back to the hints."""
        self.query_one(Prompt).display = False
        self.bar("hints").display = True
        self.screen.set_focus(self.main)
        self.draw_bars()

    def on_sheet_wanted(self) -> None:
        """Load the rows that are to be seen."""
        self.look()

    def on_resize(self, event: Resize) -> None:
        """Lay the page out anew."""
        if self.is_mounted(self.main):
            self.call_after_refresh(self._laid)

    def _laid(self) -> None:
        self.draw_bars()
        self.look()


# The lines around a page: the pool in one line, why the share cannot be read, the title, the keys.


_FIRST = ("claimed", "ready", "waiting", "pending", "failed", "rejected", "completed", "skipped")
_NAMES = {"claimed": "running"}
# From here on people are told how old the picture is, though nothing is known to be wrong.
OLD_S = 20.0
_PROBLEM_LINES = 4


def pool_bar(view: View, now: float, width: int) -> Line:
    """Return the pool in one line: its tasks by state, the leader, what stops it."""
    picture = view.picture
    if picture is None:
        return (Word(" reading the spool …" if not view.problem else " nothing is read yet", "mute"),)
    counts = picture.tasks.model_dump()
    words: list[Word] = [word(f" {picture.spool_id}", "bold"), *_stops(picture)]
    for name in _FIRST:
        if counts.get(name):
            said = f"{GLYPHS[name]} {figure(counts[name])} {_NAMES.get(name, name)}"
            words += [Word("  "), Word(said, f"state:{name}")]
    if not any(counts.get(name) for name in _FIRST):
        words.append(Word("  no tasks", "mute"))
    if not view.complete:
        words.append(Word(" so far", "low"))
    leader = f"led by {picture.master.leader}" if picture.master.leader else "nobody leads"
    old = now - view.as_of
    if view.as_of and old >= OLD_S and not view.problem:
        leader = f"{age(old)} old, {leader}"
    line = cut(tuple(words), width)
    room = width - width_of(line) - 3
    return (*line, Word(f"  {clip(leader, room):>{room}}", "mute")) if room >= min(12, len(leader)) else line


def _stops(picture: Snapshot) -> list[Word]:
    """Return what stops the pool, and how much is wrong."""
    words = []
    if picture.halted:
        words.append(Word("  HALTED", "alert"))
    elif "+all" in picture.paused:
        words.append(Word("  PAUSED", "alert"))
    elif picture.paused:
        words.append(Word(f"  {amount(len(picture.paused), 'type')} paused", "low"))
    if not picture.master.leader:
        words.append(Word("  NO LEADER", "alert"))
    alerts = len(picture.alerts) + len(picture.warnings)
    if alerts:
        words.append(Word(f"  {amount(alerts, 'alert')}", "alert"))
    return words


def problem_bar(view: View, now: float, width: int) -> list[Line]:
    """Return why the share cannot be read, and how old what is seen is; [] where it can."""
    if not view.problem:
        return []
    seen = f"What you see is {age(now - view.as_of)} old. " if view.as_of else ""
    lines = wrap((word(f"! {seen}{view.problem}", "alert"),), max(10, width - 1), 2)
    if len(lines) > _PROBLEM_LINES:
        lines = [*lines[: _PROBLEM_LINES - 1], (Word("  … the rest is in the view `alerts` (key 0)", "alert"),)]
    return lines


def title_bar(trail: Sequence[str], typed: str, note: str, marks: int, width: int) -> Line:
    """Return where one is, the filter, and how much is shown."""
    said = f" {' › '.join(trail)} "
    more = f"/{word(typed).text} " if typed else ""
    marked = f"{marks} marked " if marks else ""
    left = f"{said}{more}{marked}"
    room = width - len(left)
    right = clip(word(note).text, max(0, room - 1))
    return cut(
        (
            Word(
                f"{left}{right:>{max(0, room - 1)}} ",
            ),
        ),
        width,
    )


def hints_bar(*, read_only: bool, width: int) -> Line:
    """Return the keys that one needs first."""
    pairs = [("?", "help"), (":", "views"), ("/", "filter"), ("enter", "open"), ("esc", "back"), ("l", "log")]
    if not read_only:
        pairs += [("c", "cancel"), ("r", "retry"), ("a", "approve")]
    pairs.append(("q", "quit"))
    words: list[Word] = []
    for name, about in pairs:
        if width_of(tuple(words)) + len(name) + len(about) + 4 > width:
            break
        words += [Word("  " if words else " "), Word(name, "bold"), Word(f" {about}", "mute")]
    return tuple(words)


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


_OF_TASK: dict[str, Callable[[str], Page]] = {"details": TaskPage, "log": Log, "history": History, "events": Events}
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
                self.go(TaskPage(behind.id))
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
            proposal = await aside(partial(actions.propose, self.source, action, behind))
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
