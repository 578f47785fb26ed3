"""What a survey of a whole tree saw, as values: the question that `audit` answers.

Law: a sighting says what stood where and nothing of what it means. Files that went away between being listed and
being read are sighted without content; they moved on, and the next survey sees them where they are then.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, LeaseName, TaskName
from spoold.rules.attempts.memory import is_raised


@dataclass(frozen=True, slots=True)
class Content:
    """What matters of a task file's content; problem says why it is no task, '' when it is one.

    raises: attempts that run out of memory raise what the next one asks for.
    """

    id: str | None = None
    lane: str = ""
    conditional: bool = False
    rank: int = 0
    problem: str = ""
    raises: bool = False

    def may_stand_in(self, lane: str) -> bool:
        """Whether its token may: in its own lane, or in one with more memory after attempts that ran out of it."""
        return lane == self.lane or (self.raises and is_raised(lane, self.lane))


@dataclass(frozen=True, slots=True)
class Token:
    """One task file: its state, its path, the lane or worker it stands under ('' for none), its name.

    ended is what it ended as, for archived ones too; content is None where it was not read (archived, or moved on).
    """

    state: State
    path: str
    name: TaskName | EndedName
    branch: str = ""
    ended: State | None = None
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One result. What is inside is read only where a task file of the same name counts on it."""

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

    epoch: the highest that any name speaks of; foreign: paths whose names are of no grammar; missing: directories of
    the layout that are not there; unreadable: paths with what the system said; blocked: directories of the layout in
    whose place something else stands, with what it is; rejected: the names in rejected/; drops: how many in pending/;
    standing: paths of what leaders are admitting; irregular: of what is no file among that, with its kind.
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
