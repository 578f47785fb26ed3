"""The leader's step as a table: its stages in order, with the reads of each, and the moves that it is for.

It stands apart from `master`, its only user: this is what docs/internals.md shows.

Law: a step of a leader is this table, walked from top to bottom. Each stage sees what those before it have changed. A
test holds the table equal to the one in docs/internals.md, and its moves to those of `lifecycle`. The module that a
stage calls says what the stage may touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from spoold.master.intake import admission_directories
from spoold.master.intake.batch_admission import Batches, WatchedBatches
from spoold.master.intake.drops import Drops
from spoold.master.intake.requeue_changed import Rejudging
from spoold.master.limits import capacity
from spoold.master.limits.budget_accounts import Budgets
from spoold.master.limits.capacity import Breakers
from spoold.master.limits.result_stream import Feed
from spoold.master.listing import refresh
from spoold.master.listing.batch_members import Membership
from spoold.master.listing.unread_shares import UnreadShares
from spoold.master.people.requests import Requests
from spoold.master.people.reserving import standing
from spoold.master.report.status_report import Reporting
from spoold.master.state.leader_state import Desk
from spoold.master.state.leadership import Leadership
from spoold.master.state.limit_usage import loan_of
from spoold.master.state.rejecting import take_away
from spoold.master.state.tree_view import Place
from spoold.master.tasks import reaping, scheduler
from spoold.master.tasks.archiving import Clearing, Retaining
from spoold.master.tasks.scheduler import hold_one
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark
from spoold.rules.gates.limit_gates import regained
from spoold.rules.gates.lock_holders import Demand, turn_of
from spoold.rules.gates.resources import Uses, shares_of
from spoold.store import control
from spoold.store.mover import move
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
    kept: WatchedBatches = field(default_factory=WatchedBatches)
    rejudging: Rejudging = field(default_factory=Rejudging)
    membership: Membership = field(default_factory=Membership)
    unread: UnreadShares = field(default_factory=UnreadShares)
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
        refresh.follow(desk)


def _gather(desk: Desk, duties: Duties) -> None:
    duties.requests.of_tasks.gather(desk)
    duties.budgets.begin(desk, duties.feed)
    duties.breakers.begin(desk, duties.feed)
    scheduler.gather_facts(desk)


def _count(desk: Desk, duties: Duties) -> None:
    capacity.count_active(desk)
    duties.budgets.count(desk, duties.feed)
    count_locks(desk)


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
    scheduler.hold_back(desk)
    hold_back_clashing(desk)


def _members(desk: Desk, duties: Duties) -> None:
    duties.left += duties.membership.step(desk)
    duties.unread.step(desk)


def _promote(desk: Desk, duties: Duties) -> None:
    duties.taken = scheduler.promote(desk)
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
    Stage("missing", lambda desk, _: refresh.settle_missing(desk), "tasks that the listings no longer show"),
    Stage("count", _count, "tasks that are ready, claimed or missing", vital=True),
    Stage("loans", lambda desk, _: step(desk), "loans of units in control/", vital=True),
    Stage("watch", _watch, "heartbeats", vital=True),
    Stage("announce", _announce, "which nodes are dead"),
    Stage(
        "reap",
        lambda desk, duties: reaping.reap(desk, duties.dead),
        "the claims of dead nodes, and the heartbeats again",
        ("claimed → returned", "claimed → failed"),
    ),
    Stage("return", lambda desk, _: scheduler.place_returned(desk), "returned/", ("returned → waiting",)),
    Stage(
        "finish",
        lambda desk, _: admission_directories.finish(desk),
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
        "members",
        _members,
        "tasks that this leader did not admit, while shares take turns; ended ones, while a task waits for a batch",
    ),
    Stage("tick", lambda desk, _: desk.backlog.tick(desk.step.now), "the time", vital=True),
    Stage(
        "refuse",
        lambda desk, _: scheduler.fail_refused(desk),
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


# Who holds locks: tasks that are ready or claimed, or may be, and reservations.


_MAY_RUN = (State.WAITING, State.READY, State.CLAIMED)


def count_locks(desk: Desk) -> None:
    """Count anew who holds locks. Moves of this step are then counted as they are chosen."""
    held: dict[str, Demand | None] = {k: demand for k, demand in _known(desk) if demand}
    held.update(dict.fromkeys(_unknown(desk)))
    reserved = desk.backlog.locks.book.reserved
    for name in standing(desk.view.requests):
        if name not in reserved or not reserved[name].over:
            held[name] = reserved[name].demand if name in reserved else None
    desk.backlog.locks.hold(held)
    desk.backlog.locks.see_ready(lambda task_key: _ready(desk, task_key) is not None)


def hold_back_clashing(desk: Desk) -> None:
    """Take back ready tasks that conflict with holders of which this leader did not know. Errors: OSError.

    Of two ready ones the one that would be later in line goes back; one that is claimed goes on.
    """
    locks = desk.backlog.locks
    for stranger in sorted(locks.strangers):
        done = True
        for other in locks.book.clashing(stranger):
            ready = [key for key in (stranger, other) if _ready(desk, key) is not None]
            if ready:
                later = max(ready, key=lambda key: turn_of(desk.view.where[key].name))
                done = _back(desk, later) and done
            if stranger in ready and _ready(desk, stranger) is None:
                break
        if done:
            locks.strangers.discard(stranger)


def _back(desk: Desk, task_key: str) -> bool:
    """Take a ready task back; whether that was done."""
    place = desk.view.where[task_key]
    hold_one(desk, place, desk.view.ready[place.directory.partition("/")[2]][place.name])
    return _ready(desk, task_key) is None


def _ready(desk: Desk, task_key: str) -> Place | None:
    place = desk.view.where.get(task_key)
    listed = place is not None and place.name in desk.view.ready.get(place.directory.partition("/")[2], {})
    return place if place is not None and place.state is State.READY and listed else None


def _known(desk: Desk) -> Iterator[tuple[str, Demand]]:
    for task_key, demand in desk.learned.demands.items():
        if _may_run(desk.view.where.get(task_key)):
            yield task_key, demand


def _unknown(desk: Desk) -> Iterator[str]:
    """Tasks with conditions, of which nothing is known but their names."""
    for task_key in (*desk.learned.unlearned, *desk.view.on_the_way, *desk.missing.keys):
        place = desk.view.where.get(task_key)
        if task_key in desk.learned.demands or place is None or not _may_run(place):
            continue
        name = parse_task(place.name)
        if name is not None and name.conditional and key(name.id) not in desk.backlog:
            yield task_key


def _may_run(place: Place | None) -> bool:
    """Whether a task that was seen there last may run. One that surely waits is in the backlog, and has no place."""
    return place is not None and place.state in _MAY_RUN


# Takes the units that waiting tasks offer, and gives them back before any ready task gets one.


def step(desk: Desk) -> None:
    """Take offers, give units back, and remove loans whose claim is gone. Errors: OSError."""
    loans = [request for request in desk.view.requests if request.verb in OF_A_LOAN]
    if desk.units.given:
        listed = set(map(loan_of, loans))
        desk.units.forget(lambda loan: loan in listed or _runs(desk, loan[0]))
    if not loans:
        desk.units.doubt(set())
        return
    _give_back(desk)
    stray = [request for request in loans if not _claimed(desk, request)]
    for request in desk.some(loans, "loans"):
        if loan_of(request) in desk.units.given:
            take_away(desk, control.path(request))  # again, where the listing still shows it
        elif request.verb is Verb.LEND and request not in stray:
            _take(desk, request)
    if desk.step.listed.everything:
        over = desk.units.doubt(set(map(loan_of, stray)))
        for request in desk.some([request for request in stray if loan_of(request) in over]):
            take_away(desk, control.path(request))


def asking(desk: Desk) -> Iterator[tuple[TaskName, Request, Uses]]:
    """Yield the claimed tasks that want their units back, in the order in which they get them."""
    found = []
    for node, names in desk.view.claimed.items():
        loans = desk.units.of(node, (task.id for task in names.values()))
        for task in names.values():
            loan = loans.get(key(task.id))
            if loan is not None and loan.verb is Verb.REGAIN:
                found.append((task, loan, desk.resources.running(desk.learned.lanes.get(key(task.id), ""))))
    yield from sorted(found, key=lambda one: (one[0].rank, one[0].order, one[0].id))


def _give_back(desk: Desk) -> None:
    wanting = list(asking(desk))
    if not wanting:
        return
    stock = replace(desk.usage.stock, shares=shares_of(desk.store.settings, desk.usage.slots))
    verdict = regained(((loan.encode(), uses) for _, loan, uses in wanting), stock)
    for task, loan, uses in wanting:
        if loan.encode() in verdict.back:
            desk.usage.take(uses)  # before the loan goes: from then on the task may go on
            desk.units.give(loan_of(loan))
            take_away(desk, control.path(loan))
            desk.journal.note("UNITS_BACK", task.id, task.attempt)
            desk.step.change()
    kept = [uses for _, loan, uses in wanting if loan.encode() not in verdict.back]
    desk.usage.keep(verdict.wanted, kept)


def _take(desk: Desk, request: Request) -> None:
    """Take an offer. It counts when the next listing shows it; if the worker has withdrawn it, there is nothing."""
    if move(desk.store.fs, control.path(request), control.path(replace(request, verb=Verb.LENT))):
        desk.journal.note("UNITS_LENT", request.target)
        desk.polling.hasten("requests")
        desk.step.change()


def _runs(desk: Desk, task_key: str) -> bool:
    place = desk.view.where.get(task_key)
    return place is not None and place.state is State.CLAIMED


def _claimed(desk: Desk, request: Request) -> bool:
    """Whether the task of a loan is claimed by the worker whose loan it is."""
    place = desk.view.where.get(key(request.target))
    if place is None or place.state is not State.CLAIMED:
        return False
    return loan_mark(place.directory.partition("/")[2]) == request.unique.partition("-")[0]
