"""The leader's step as a table: its stages in order, with the reads of each, and the moves that it is for.

Law: a step of a leader is this table, walked from top to bottom. Each stage sees what those before it have changed. A
test holds the table equal to the one in docs/internals.md, and its moves to those of `lifecycle`. The module that a
stage calls says what the stage may touch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spoold.master import counting, doors, following, holding, placing, reaping, relisting, unit_loans
from spoold.master.batches import Batches
from spoold.master.breakers import Breakers
from spoold.master.budgets import Budgets
from spoold.master.clearing import Clearing
from spoold.master.desk import Desk
from spoold.master.drops import Drops
from spoold.master.feed import Feed
from spoold.master.kept import Kept
from spoold.master.leadership import Leadership
from spoold.master.membership import Membership
from spoold.master.rejudging import Rejudging
from spoold.master.reporting import Reporting
from spoold.master.requests import Requests
from spoold.master.retaining import Retaining
from spoold.system.host import Host

STAGE = "stage"


@dataclass(slots=True)
class Duties:
    """The memory of the stages over the steps of one epoch, and the results that one stage leaves to later ones.

    relist: lists unpolled directories again, when it is time. followed: the polled ones were listed for this step
    already. dead: nodes to be reaped; closed: the share is full, so no drop is admitted; left: drops for the next
    step; taken: tasks that were put into ready/; report_due: when (monotonic, s) the next snapshot is due.
    """

    leadership: Leadership
    host: Host
    relist: Callable[[Desk], None]
    reporting: Reporting
    feed: Feed
    budgets: Budgets
    breakers: Breakers
    drops: Drops = field(default_factory=Drops)
    batches: Batches = field(default_factory=Batches)
    kept: Kept = field(default_factory=Kept)
    rejudging: Rejudging = field(default_factory=Rejudging)
    membership: Membership = field(default_factory=Membership)
    requests: Requests = field(default_factory=Requests)
    retaining: Retaining = field(default_factory=Retaining)
    clearing: Clearing = field(default_factory=Clearing)
    followed: bool = False
    dead: list[str] = field(default_factory=list)
    closed: bool = False
    left: int = 0
    taken: int = 0
    report_due: float = 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the table. reads: what it decides by; moves: from where to where it renames tokens and drops.

    Besides, a stage may fail a token that it reads and that is no task or cannot be handled, and reject a copy.
    Errors of run: OSError, ShutOut, DoorShut. They end the step, and the next one begins from the top.
    vital: what later stages decide by comes from this one, so a fault in it that names no input ends the step, too.
    """

    name: str
    run: Callable[[Desk, Duties], None]
    reads: str
    moves: tuple[str, ...] = ()
    vital: bool = False


def run_safely(stage: Stage, desk: Desk, duties: Duties) -> None:
    """Run a stage. Each contains the faults of its inputs itself; one with a fault that names none rests for a while,
    and the others go on, but for a vital one. Errors: those of `run`.
    """
    if stage.vital:
        stage.run(desk, duties)
        return
    if desk.faults.rests(STAGE, stage.name):
        return
    with desk.faults.handling(STAGE, stage.name) as handling:
        stage.run(desk, duties)
    if handling.fault is not None:
        desk.step.doubt()


def _follow(desk: Desk, duties: Duties) -> None:
    if not duties.followed:
        following.follow(desk)


def _gather(desk: Desk, duties: Duties) -> None:
    duties.requests.of_tasks.gather(desk)
    duties.budgets.begin(desk, duties.feed)
    duties.breakers.begin(desk, duties.feed)
    placing.gather_facts(desk)


def _count(desk: Desk, duties: Duties) -> None:
    counting.count_active(desk)
    duties.budgets.count(desk, duties.feed)
    holding.count_locks(desk)


def _watch(desk: Desk, duties: Duties) -> None:
    reporting = duties.reporting
    gone = reporting.gone(desk, duties.host)
    here = reporting.here(desk, duties.host)
    duties.dead = reaping.watch(desk, reporting.asleep(desk), gone, here)
    reporting.refute(desk, gone)


def _announce(desk: Desk, duties: Duties) -> None:
    duties.reporting.announce(desk, duties.leadership, duties.drops.growing(), duties.dead)


def _drops(desk: Desk, duties: Duties) -> None:
    pending, now = bool(desk.view.pending), desk.step.now.monotonic
    duties.closed = pending and not desk.health.admits(desk.store, now)
    duties.left = duties.drops.step(desk, closed=duties.closed)


def _batches(desk: Desk, duties: Duties) -> None:
    duties.left += duties.batches.step(desk)


def _hold_back(desk: Desk, _: Duties) -> None:
    placing.hold_back(desk)
    holding.hold_back_clashing(desk)


def _members(desk: Desk, duties: Duties) -> None:
    duties.left += duties.membership.step(desk)


def _promote(desk: Desk, duties: Duties) -> None:
    duties.taken = placing.promote(desk)
    duties.budgets.tell(desk)
    duties.left += desk.backlog.locks.left


def _feed(desk: Desk, duties: Duties) -> None:
    duties.left += duties.budgets.hand_on(desk, duties.feed)
    duties.breakers.tell(desk, duties.feed)


def _report(desk: Desk, duties: Duties) -> None:
    duties.report_due = duties.reporting.step(desk, duties.leadership, duties.drops.growing())


# A function that is looked up when it is called can be replaced: the simulator breaks the laws in this way.
STAGES: tuple[Stage, ...] = (
    Stage("follow", _follow, "the directories that are polled", vital=True),
    Stage("gather", _gather, "settings, requests, the time", vital=True),
    Stage(
        "relist",
        lambda desk, duties: duties.relist(desk),
        "now and then: all doors, waiting/, and what stands in ready/",
        ("admitting → admitting",),
        vital=True,
    ),
    Stage("missing", lambda desk, _: relisting.settle_missing(desk), "tasks that the listings no longer show"),
    Stage("count", _count, "tasks that are ready, claimed or missing", vital=True),
    Stage("loans", lambda desk, _: unit_loans.step(desk), "loans of units in control/", vital=True),
    Stage("watch", _watch, "heartbeats", vital=True),
    Stage("announce", _announce, "which nodes are dead"),
    Stage(
        "reap",
        lambda desk, duties: reaping.reap(desk, duties.dead),
        "the claims of dead nodes, and the heartbeats again",
        ("claimed → returned", "claimed → failed"),
    ),
    Stage("return", lambda desk, _: placing.place_returned(desk), "returned/", ("returned → waiting",)),
    Stage(
        "finish",
        lambda desk, _: doors.finish(desk),
        "tasks in the leader's own door",
        ("admitting → waiting", "admitting → ready"),
    ),
    Stage(
        "drops",
        _drops,
        "pending/",
        ("pending → admitting", "pending → waiting", "pending → ready", "pending → rejected"),
    ),
    Stage(
        "batches",
        _batches,
        "batches in the leader's own door",
        ("admitting → admitting", "admitting → waiting", "admitting → pending"),
    ),
    Stage(
        "kept",
        lambda desk, duties: duties.kept.step(desk),
        "batches whose writer may go on",
        ("admitting → admitting", "admitting → pending"),
    ),
    Stage(
        "rejudge",
        lambda desk, duties: duties.rejudging.step(desk, duties.drops.lost),
        "rejected/",
        ("rejected → pending",),
    ),
    Stage(
        "requests",
        lambda desk, duties: duties.requests.step(desk),
        "control/",
        (
            "waiting → failed",
            "ready → failed",
            "returned → failed",
            "failed → waiting",
            "completed → waiting",
            "archive → waiting",
            "ready → waiting",
            "waiting → waiting",
        ),
    ),
    Stage(
        "members", _members, "while a task waits for a batch: tasks that this leader did not admit, and ended ones"
    ),
    Stage("tick", lambda desk, _: desk.backlog.tick(desk.step.now), "the time", vital=True),
    Stage(
        "refuse",
        lambda desk, _: placing.fail_refused(desk),
        "tasks that the gates refuse, and deadlines that are past",
        ("waiting → failed", "ready → failed"),
    ),
    Stage(
        "hold",
        _hold_back,
        "ready tasks, and whether their types may run now; who holds locks",
        ("ready → waiting",),
    ),
    Stage("promote", _promote, "waiting tasks that may run now", ("waiting → ready",)),
    Stage("feed", _feed, "results of attempts that ended, if there is a subscriber"),
    Stage(
        "retain",
        lambda desk, duties: duties.retaining.step(desk),
        "ended tasks, by age and number",
        ("completed → archive", "failed → archive"),
    ),
    Stage("clear", lambda desk, duties: duties.clearing.step(desk), "once a minute: the ages of files"),
    Stage("report", _report, "all of the above"),
)
