"""The views by their names, what a command line means, and the page of help.

Law: each view has one name, and the words before it that are unique mean it, too.
"""

from __future__ import annotations

from collections.abc import Callable

from spoold.faces.top.keys import digit, keys
from spoold.faces.top.lines import Picture, Row, Word, shown, state, wrap
from spoold.faces.top.pages.batch import OneBatch
from spoold.faces.top.pages.gates import Budgets, Limits, Locks
from spoold.faces.top.pages.history import History
from spoold.faces.top.pages.lists import Batches, Failed, Nodes, Queue, Waiting
from spoold.faces.top.pages.log import Log
from spoold.faces.top.pages.notices import Alerts, Asks, Events
from spoold.faces.top.pages.overview import Overview
from spoold.faces.top.pages.page import Page, kept
from spoold.faces.top.pages.running import Running
from spoold.faces.top.pages.task import Task
from spoold.faces.top.pages.tasks import Tasks
from spoold.faces.top.source import Room, Source
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
    "task": ("ID", Task),
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
