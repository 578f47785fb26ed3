"""The making of remarks, also from figures. Remarks in words, and which strategies each rules out.

Law: only operations that spoold relies on can rule a strategy out; a trial that ended in an error rules out both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spoold.protocol.doctor_report import Remark, Strategy

Figures = Mapping[str, Any]
Judges = Mapping[str, Callable[[Figures], list[Remark]]]

BOTH: tuple[Strategy, ...] = ("rename", "lock")
RENAME: tuple[Strategy, ...] = ("rename",)
LOCK: tuple[Strategy, ...] = ("lock",)


def bad(probe: str, problem: str, mend: str, against: tuple[Strategy, ...] = BOTH) -> Remark:
    """A finding that rules strategies out."""
    return Remark(grade="bad", probe=probe, problem=problem, mend=mend, against=against)


def warning(probe: str, problem: str, mend: str) -> Remark:
    """A finding that people should fix, and can live with."""
    return Remark(grade="warning", probe=probe, problem=problem, mend=mend)


def note(probe: str, problem: str, mend: str = "") -> Remark:
    """A finding that is good to know."""
    return Remark(grade="note", probe=probe, problem=problem, mend=mend)


def judged(measured: Mapping[str, Figures], judges: Judges) -> list[Remark]:
    """The remarks on the figures of all probes, each by its judge; probes without a judge are only kept."""
    found = []
    for probe, figures in measured.items():
        if "error" in figures:
            said = "" if figures.get("lost") else "the trial ended with "
            found.append(bad(probe, f"{said}{figures['error']}", _mend(figures)))
        elif probe in judges:
            found += judges[probe](figures)
    return found


def _mend(figures: Figures) -> str:
    if figures.get("lost"):
        return "see what that machine says, and let the doctor run again on all of them"
    if figures.get("late"):
        return "let the doctor run again; if it takes as long then, see the server's log about this"
    if figures.get("hung"):
        return "check the network and the file server; a hard mount goes on by itself when the server is back"
    return "check the permissions of the share and the server's log about this"
