"""The views by their names, what a command line means, the table of keys, and the page of help.

Law: each view has one name, and the words before it that are unique mean it, too. One table of keys, as in k9s and
vi, serves the application, the help and the manual. A key that acts on the spool is left out where a person may only
read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spoold.faces.top.batch_page import OneBatch
from spoold.faces.top.gates_page import Budgets, Limits, Locks
from spoold.faces.top.list_pages import Alerts, Asks, Batches, Events, Failed, Nodes, Queue, Running, Waiting
from spoold.faces.top.log_page import Log
from spoold.faces.top.overview_page import Overview
from spoold.faces.top.page import Page, kept
from spoold.faces.top.source import Room, Source
from spoold.faces.top.task_page import History, TaskPage
from spoold.faces.top.tasks_page import Tasks
from spoold.faces.top.text_layout import Picture, Row, Word, shown, state, wrap
from spoold.protocol.amount import amount
from spoold.protocol.lifecycle import SHOWN

_WORDS = 16


class Help(Page):
    """The keys, the views, and the signs of the states."""

    name = "help"
    about = "keys, views, signs"
    every_s = 3600.0

    def gather(self, source: Source, room: Room) -> Picture:
        """Return the page."""
        left_out = "; --read-only: those that act are left out" if source.read_only else ""
        rows: list[Row] = [Row((Word("KEYS", "bold"), Word(left_out, "mute")))]
        for key in keys(read_only=source.read_only):
            rows += _entry(key.shown, key.about, room.width)
        rows += [Row(()), Row((Word("VIEWS: type : and the name, or a digit", "bold"),))]
        for name, (about, argument) in ABOUT.items():
            rows += _entry(f"{digit(name):<2}:{name}{' ' + argument if argument else ''}", about, room.width)
        rows += [Row(()), Row((Word("STATES", "bold"),))]
        rows += [Row((state(one.value), Word("  running" if one.value == "claimed" else ""))) for one in SHOWN]
        rows = [Row(row.line, f"line {number}") for number, row in enumerate(rows)]
        return shown("help", kept(self.typed, rows), note=amount(len(rows), "line"))


def _entry(name: str, about: str, width: int) -> list[Row]:
    size = max(_WORDS, len(name) + 2)
    return [Row(line) for line in wrap((Word(f"{name:<{size}}", "bold"), Word(about)), width, _WORDS)]


# Views without an argument, and those that need one.
VIEWS: dict[str, Callable[[], Page]] = {
    "overview": Overview,
    "tasks": Tasks,
    "running": Running,
    "failed": Failed,
    "waiting": Waiting,
    "batches": Batches,
    "nodes": Nodes,
    "queue": Queue,
    "asks": Asks,
    "alerts": Alerts,
    "limits": Limits,
    "budgets": Budgets,
    "locks": Locks,
    "events": Events,
    "help": Help,
}
OF_ONE: dict[str, tuple[str, Callable[[str], Page]]] = {
    "task": ("ID", TaskPage),
    "log": ("ID", Log),
    "history": ("ID", History),
    "batch": ("NAME", OneBatch),
}
ABOUT: dict[str, tuple[str, str]] = {
    **{
        name: (str(getattr(page, "about", "")), "[FILTER]" if name == "tasks" else "") for name, page in VIEWS.items()
    },
    **{name: (str(getattr(page, "about", "")), argument) for name, (argument, page) in OF_ONE.items()},
}


def page_of(name: str, argument: str) -> Page | str:
    """Return the page that a command names, or a sentence on why there is none."""
    if name in OF_ONE:
        wanted, made = OF_ONE[name]
        return made(argument) if argument else f"`:{name}` needs {wanted}"
    page = VIEWS[name]()
    if argument:
        page.filter(argument)
    return page


def named(word: str, names: tuple[str, ...]) -> str:
    """Return the name that a word means: itself, or the only one that begins with it; '' for none."""
    if word in names:
        return word
    found = [name for name in names if name.startswith(word)]
    return found[0] if len(found) == 1 and word else ""


# The keys, as in k9s and vi: what each does, for the application, for the help, and for the manual.


class Key(NamedTuple):
    """One key. keys: as textual names it; shown: as people read it; does: the word for the application."""

    keys: str
    shown: str
    does: str
    about: str
    acts: bool = False


KEYS = (
    Key("question_mark,f1", "?", "help", "help: keys and views"),
    Key("colon", ":", "command", "command line: the name of a view, or an action; Tab completes"),
    Key("slash", "/", "filter", "filter: words, state:failed type:T batch:B worker:W code:C; in a log: search"),
    Key("enter", "enter", "open", "open what is under the cursor"),
    Key("escape,backspace", "esc", "back", "take back marks, then the filter, then the view"),
    Key("j,down", "j", "down", "down"),
    Key("k,up", "k", "up", "up"),
    Key("pagedown,ctrl+d,ctrl+f", "ctrl+d", "page_down", "a page down"),
    Key("pageup,ctrl+u,ctrl+b", "ctrl+u", "page_up", "a page up"),
    Key("g,home", "g", "first", "to the first row"),
    Key("G,end", "G", "last", "to the last row; in a log: follow"),
    Key("tab", "tab", "other", "to the other column"),
    Key("space", "space", "mark", "mark a row for an action on several"),
    Key("ctrl+a,asterisk", "ctrl+a", "mark_all", "mark all tasks that the filter leaves"),
    Key("d", "d", "details", "details of a task: why, attempts, needs"),
    Key("l", "l", "log", "log of a task"),
    Key("h", "h", "history", "history of a task"),
    Key("e", "e", "events", "events of a task"),
    Key("s", "s", "sort", "tasks: the next order"),
    Key("n", "n", "next", "log: next match"),
    Key("N", "N", "previous", "log: match before"),
    Key("E", "E", "error", "log: first line that looks like an error"),
    Key("left_square_bracket", "[", "attempt-", "log: attempt before"),
    Key("right_square_bracket", "]", "attempt+", "log: next attempt"),
    Key("less_than_sign", "<", "older", "log: earlier bytes"),
    Key("greater_than_sign", ">", "newer", "log: later bytes"),
    Key("t", "t", "theme", "dark, light"),
    Key("q,ctrl+c", "q", "quit", "quit"),
    Key("c", "c", "cancel", "cancel tasks", acts=True),
    Key("r", "r", "retry", "retry tasks that failed", acts=True),
    Key("a", "a", "approve", "approve, or answer a question", acts=True),
    Key("x", "x", "reject", "reject, with a reason", acts=True),
    Key("H", "H", "hold", "hold tasks", acts=True),
    Key("R", "R", "release", "release held tasks", acts=True),
    Key("p", "p", "pause", "pause a type, or everything", acts=True),
    Key("u", "u", "resume", "resume a type, or everything", acts=True),
    Key("D", "D", "drain", "drain a node", acts=True),
    Key("U", "U", "undrain", "take a drain back", acts=True),
)
ACTIONS = tuple(key.does for key in KEYS if key.acts)
# The digits open these.
DIGITS = ("overview", "tasks", "running", "failed", "waiting", "batches", "nodes", "queue", "asks", "alerts")


def keys(*, read_only: bool) -> tuple[Key, ...]:
    """Return the keys that there are."""
    return tuple(key for key in KEYS if not (read_only and key.acts))


def digit(name: str) -> str:
    """Return the digit that opens a view; '' for none."""
    return str((DIGITS.index(name) + 1) % 10) if name in DIGITS else ""
