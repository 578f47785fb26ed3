"""The lines around a page: the pool in one line, why the share cannot be read, the title, the keys.

Law: pure. A line that has no room for everything ends with …, and the whole is on a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spoold.faces.top.figures import age
from spoold.faces.top.lines import Line, Word, clip, cut, width_of, word, wrap
from spoold.pictures.palette import GLYPHS
from spoold.protocol.amount import amount, figure

if TYPE_CHECKING:
    from spoold.client.view import View
    from spoold.protocol.snapshot import Snapshot

_FIRST = ("claimed", "ready", "waiting", "pending", "failed", "rejected", "completed", "skipped")
_NAMES = {"claimed": "running"}
# From here on people are told how old the picture is, though nothing is known to be wrong.
OLD_S = 20.0
_PROBLEM_LINES = 4


def pool(view: View, now: float, width: int) -> Line:
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


def problem(view: View, now: float, width: int) -> list[Line]:
    """Return why the share cannot be read, and how old what is seen is; [] where it can."""
    if not view.problem:
        return []
    seen = f"What you see is {age(now - view.as_of)} old. " if view.as_of else ""
    lines = wrap((word(f"! {seen}{view.problem}", "alert"),), max(10, width - 1), 2)
    if len(lines) > _PROBLEM_LINES:
        lines = [*lines[: _PROBLEM_LINES - 1], (Word("  … the rest is in the view `alerts` (key 0)", "alert"),)]
    return lines


def title(trail: Sequence[str], typed: str, note: str, marks: int, width: int) -> Line:
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


def hints(*, read_only: bool, width: int) -> Line:
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
