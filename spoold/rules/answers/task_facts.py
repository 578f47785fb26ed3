"""The known facts about one task at one moment: the question that `explain` answers, and the form of the answer.

Law: values only, gathered by listing; a fact that was not gathered has a default that blames nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Capabilities, Keeps
from spoold.protocol.lanes import Lane
from spoold.protocol.lifecycle import State
from spoold.rules.cluster.election import MISSING, MISSING_MEND, takes_over
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent, TypeFacts
from spoold.rules.gates.standing_requests import Requested
from spoold.rules.share.free_space import Room


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker as its heartbeat shows it; lanes are the demands of its running tasks, as far as they were read.

    asleep: since when (RFC 3339) its machine sleeps, '' if it is awake; avoids: keys of tasks that it leaves
    to others for a while, each with the reason; keeps: the task that it keeps room for.
    """

    node: str
    capabilities: Capabilities
    slots: int = 1
    running: int = 0
    alive: bool = True
    draining: bool = False
    asleep: str = ""
    lanes: tuple[Lane, ...] = ()
    notes: tuple[str, ...] = ()
    avoids: Mapping[str, str] = field(default_factory=dict)
    keeps: Keeps | None = None


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that ended: its number, how, who decided it, when (RFC 3339), how long (s) it had been frozen.

    started: whether it began, since a task may end where it waits; wrote: whether it has a log; last_line: of that
    log, '' where its program is not at fault; remark: what is wrong with its output, and the fix; work: what the work
    of an agent came to.
    """

    number: int
    status: str
    by: str
    at: str = ""
    code: str = ""
    message: str = ""
    frozen_s: float = 0.0
    started: bool = True
    wrote: bool = False
    last_line: str = ""
    remark: str = ""
    work: str = ""

    @property
    def ending(self) -> str:
        """How the attempt ended, as part of a sentence."""
        return f"{self.code or self.status}{f': {self.message}' if self.message else ''}"


@dataclass(frozen=True, slots=True)
class Claim:
    """Who runs the task, since when (RFC 3339), its last report and why that does not count, and whether a user asked
    to cancel it, or to give it another priority (ranked).

    frozen_s: how long (s) it was frozen while its worker had no lease.
    silent_s: how long ago (s) its worker was last heard of, None if that is within a lease.
    stuck: why the leader cannot take it back, in the leader's words; '' if it can.
    lent: whether its slot is lent, since it waits for other tasks; back: what it wants back of limits, to go on.
    kind: as which type it runs, where that is not its own; '' where it is.
    """

    worker: str
    alive: bool = True
    since: str = ""
    progress: Any = None
    progress_problem: str = ""
    cancel: bool = False
    ranked: bool = False
    stuck: str = ""
    frozen_s: float = 0.0
    silent_s: float | None = None
    lent: bool = False
    back: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One task. now in seconds since 1970; rest_s: how long (s) the retry delay still lasts at most; file: its name
    in waiting/.

    leader: who leads, None for no node; standbys: who else would; token: whether master/ has it, and a node can lead;
    parents: the known state of each dependency, places: in words; type: the facts of its type; ahead: tasks before
    it in its lane, or drops before it in pending/; in_line:
    the same, as tasks stand in line for locks; window and standing: how many tasks its lane in ready/ may hold,
    and does; last: the attempt before this one, or the one that ended it; origins: the tasks with which a failure by
    dependency began → the code of each, '' if it is lost; retried: whether a request to retry it stands; mute: live
    workers that do not say what they can run;
    problem: the fault of a drop, young while the drop may still become good; hidden: why this user cannot read it;
    awaits: the known facts about the batch that a drop waits for, or is a line of; disk: the room on the share;
    blocked: the obstacle in the place of results/, with the fix; read_only: the machine that asks has mounted it so;
    twin: why the last drop was rejected that wanted this task's id, and was another task.
    fault: what spoold could not handle of this task, in the words of the node; '' for nothing.
    order: of its token; requested: the requests about it that stand; sent_back: who sent it back last, and why;
    above: the keys of the tasks above it whose slots are lent, since they wait for tasks below them.
    others: the types as which it may run while a limit of its own is closed, in order, each with its facts; home: the
    facts of its own type, where it is ready as another one; repo: the repository that a merge names; batch: of a task
    that failed since others did, '' for none. turn: whose turn it is, and when that of its share comes; '' where no
    other share waits.
    """

    id: str
    state: State
    now: float
    attempt: int = 0
    leader: str | None = None
    standbys: tuple[str, ...] = ()
    token: bool = True
    dead_after_s: float = 15
    lane: Lane | None = None
    conditions: Conditions = NO_CONDITIONS
    rest_s: float = 0.0
    file: str = ""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    type: TypeFacts = field(default_factory=TypeFacts)
    asked: Mapping[tuple[str, str], str] = field(default_factory=dict)
    workers: tuple[Seen, ...] = ()
    mute: tuple[str, ...] = ()
    ahead: int = 0
    in_line: int = 0
    standing: int = 0
    window: int = 256
    last: EndedAttempt | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    retried: bool = False
    claim: Claim | None = None
    problem: BadFile | None = None
    young: bool = False
    held: bool = False
    hidden: BadFile | None = None
    awaits: str = ""
    grace_s: float = 10
    disk: Room = Room.ENOUGH
    blocked: str | None = None
    read_only: bool = False
    twin: BadFile | None = None
    order: str = ""
    requested: tuple[Requested, ...] = ()
    sent_back: str = ""
    above: tuple[str, ...] = ()
    fault: str = ""
    others: tuple[tuple[str, TypeFacts], ...] = ()
    home: TypeFacts | None = None
    repo: str = ""
    batch: str = ""
    turn: str = ""

    @property
    def before(self) -> str:
        """How the attempt before this one ended."""
        return "" if self.last is None else f"attempt {self.last.number} ended as {self.last.ending}"


@dataclass(frozen=True, slots=True)
class Reason:
    """One obstacle: the gate, the words, the change that would help, and its end (s since 1970)."""

    gate: str
    reason: str
    change: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer: the task's state, one sentence, every reason behind it, and the last line of a task that failed."""

    id: str
    state: str
    attempt: int
    verdict: str
    reasons: tuple[Reason, ...] = ()
    last_line: str = ""


# What several answers say.


Answer = tuple[str, list[Reason]]


def unread(case: Case) -> Iterator[Reason]:
    """Say what is wrong with the task's own file."""
    if case.problem is not None:
        yield Reason("file", f"its file {case.problem.told(case.id)}", case.problem.mend)


def leadership(case: Case) -> Iterator[Reason]:
    """Say that no node leads, and who will."""
    if case.leader is None:
        why, change = "no node leads the spool, so", "start `spool master` or `spool up` on a machine that mounts it"
        if not case.token:
            why, change = f"{MISSING}, and", MISSING_MEND
        elif case.read_only:
            why, change = "no node leads the spool, which is mounted read-only here, so", "mount it read-write"
        if case.token and case.standbys:
            why, change = (
                "no node leads the spool just now, so",
                f"nothing: {takes_over(case.standbys, case.dead_after_s)}",
            )
        yield Reason("leader", f"{why} nothing is admitted, retried or taken back", change)


def first_of(reasons: list[Reason], otherwise: str) -> str:
    """Return the verdict: the first reason, or these words."""
    return reasons[0].reason if reasons else otherwise
