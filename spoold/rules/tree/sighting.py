"""The content of a survey of a whole tree, as values: the question that `audit` answers.

Law: a sighting says what stood where, and not its meaning. Files that vanished between listing and reading are
sighted without content; they moved on, and the next survey sees them at their new place.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, LeaseName, TaskName
from spoold.rules.attempts.memory import is_raised


@dataclass(frozen=True, slots=True)
class Content:
    """The facts of a task file's content; problem says why it is not a task, '' if it is one.

    raises: attempts that run out of memory raise the demand of the next one.
    """

    id: str | None = None
    lane: str = ""
    conditional: bool = False
    rank: int = 0
    problem: str = ""
    raises: bool = False

    def may_stand_in(self, lane: str) -> bool:
        """Whether its token may be in a lane: its own, or one with more memory after attempts that ran out of it."""
        return lane == self.lane or (self.raises and is_raised(lane, self.lane))


@dataclass(frozen=True, slots=True)
class Token:
    """One task file: its state, its path, the lane or worker it stands under ('' for none), its name.

    ended: the state that it ended in, archived or not; content is None if it was not read (archived, or moved on).
    """

    state: State
    path: str
    name: TaskName | EndedName
    branch: str = ""
    ended: State | None = None
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One result. Its content is read only if a task file of the same name counts on it."""

    path: str
    name: EndedName
    read: bool = False
    task_id: str = ""
    attempt: int = 0
    status: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """The tree. nodes have a heartbeat, workers a claim directory, writers a tmp directory.

    epoch: the highest in any name; foreign: paths whose names are of no grammar; missing: missing directories of the
    layout; unreadable: paths with the system's error; blocked: directories of the layout in whose place something
    else stands, with its kind; rejected: the names in rejected/; drops: how many in pending/; standing: paths that
    leaders are admitting; irregular: those of them that are not files, with their kind.
    """

    tokens: tuple[Token, ...] = ()
    results: tuple[Record, ...] = ()
    leases: tuple[LeaseName, ...] = ()
    nodes: frozenset[str] = frozenset()
    workers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    irregular: tuple[tuple[str, str], ...] = ()
    foreign: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()
    drops: int = 0
    epoch: int = 0
