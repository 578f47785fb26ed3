"""The findings of an audit: severity, broken law, place, the fix in words, and the fix as a value.

Law: a fix is the action of `--repair`, and `audit` alone chooses it; the code that carries it out decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.names import EndedName, TaskName


class Severity(StrEnum):
    """How bad a finding is; only errors make `spool fsck` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class SetAside:
    """Move a second token of an id to rejected/, with the reason beside it."""

    path: str
    id: str
    kept: str


@dataclass(frozen=True, slots=True)
class Relane:
    """Move a token to waiting/, into the lane and under the name that its content asks for."""

    path: str
    lane: str
    name: TaskName


@dataclass(frozen=True, slots=True)
class Rerun:
    """Let a task whose result is lost wait for another attempt."""

    path: str
    lane: str
    rank: int
    conditional: bool
    name: EndedName


@dataclass(frozen=True, slots=True)
class Fail:
    """End a token whose content is no task, so that the tasks that wait for it get an answer."""

    path: str
    name: TaskName
    problem: str


@dataclass(frozen=True, slots=True)
class MakeLease:
    """Make the token of leadership, with an epoch above all earlier ones."""

    above: int


@dataclass(frozen=True, slots=True)
class DropLease:
    """Remove a token of leadership that another one outranks."""

    path: str


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Make a directory of the layout."""

    path: str


Fix = SetAside | Relane | Rerun | Fail | MakeLease | DropLease | MakeDirectory


@dataclass(frozen=True, slots=True)
class Finding:
    """The fault, its place, its law, and the fix in words; fix is the action of `--repair`, None for nothing."""

    severity: Severity
    law: str
    paths: tuple[str, ...]
    problem: str
    mend: str
    fix: Fix | None = None
