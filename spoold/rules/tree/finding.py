"""What an audit finds: how bad it is, which law it breaks, where, the mend in words, and the fix as a value.

Law: a fix is what `--repair` does and it is chosen by `audit` alone; whoever carries it out decides nothing.
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
    """End a token whose content is no task, so that whoever waits for it hears of it."""

    path: str
    name: TaskName
    problem: str


@dataclass(frozen=True, slots=True)
class MakeLease:
    """Make the token of leadership, with an epoch above all that were."""

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
    """What is wrong, where, by which law, and the mend in words; fix is what `--repair` does, None for nothing."""

    severity: Severity
    law: str
    paths: tuple[str, ...]
    problem: str
    mend: str
    fix: Fix | None = None
