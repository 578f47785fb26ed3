"""The keys, as in k9s and vi: what each does, for the application, for the help, and for the manual.

Law: one table. A key that acts on the spool is left out where a person may only read.
"""

from __future__ import annotations

from typing import NamedTuple


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
