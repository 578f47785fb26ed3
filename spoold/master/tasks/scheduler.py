"""returned/ → waiting/ → ready/; fails tasks that can never run, and takes ready ones back if a gate closes.

Law: a task is put into ready/ only if every gate lets it pass at that moment. A move to ready/ whose outcome is
unknown counts as made, until the listings show the place of the task. A token in the lane of another type goes back
into that of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import has_completed, reject_twin
from spoold.master.state.tree_view import Place, waiting_place
from spoold.protocol import layout
from spoold.protocol.errors import BadName, legible
from spoold.protocol.lanes import kind_in, own_lane, parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, rank_of
from spoold.protocol.result import Code, Error
from spoold.protocol.task import Task
from spoold.rules.attempts import end_conditions
from spoold.rules.attempts.retry_rule import may_be_raised, raised
from spoold.rules.attempts.task_policy import retry_policy
from spoold.rules.entry.admission import Admit
from spoold.rules.gates import breaker_gate, budget_gate, dependency_gates, lock_gate
from spoold.rules.gates.budget_usage import draws_of
from spoold.rules.gates.facts import NO_CONDITIONS, Known, LaneFacts, Parent, TypeFacts
from spoold.rules.gates.gate import Pass, Refuse
from spoold.rules.gates.registry import gather, judge_type
from spoold.rules.gates.resources import class_used, shares_of
from spoold.rules.gates.standing_requests import halted_by
from spoold.rules.scheduling.backlog import BREATHE_EVERY
from spoold.rules.scheduling.fair_shares import LEAST, UNREAD, crowding
from spoold.rules.scheduling.fallback_types import Instead, lanes_instead
from spoold.rules.scheduling.promotion import LaneView, displaced, holdbacks, promotions
from spoold.rules.scheduling.queues import Standing, Way
from spoold.rules.scheduling.waiting_task import Entry
from spoold.store.attempt_records import Ledger, read_record
from spoold.store.existence import names_in
from spoold.store.lanes_and_archive import move_into_lane
from spoold.store.mover import Moved

PER_STEP = 1000


def place_returned(desk: Desk) -> None:
    """Move every attempt that was handed back to waiting/; its rest counts from now. Errors: OSError."""
    for name, task in desk.some(sorted(desk.view.returned.items()), "returned"):
        place = Place(State.RETURNED, layout.RETURNED, name)
        desk.contained("returned task", place, task, partial(_place_one, desk, place, task))


def _place_one(desk: Desk, place: Place, task: TaskName) -> None:
    if has_completed(desk, task.id):
        if reject_twin(desk, place.path, task.id):
            desk.view.forget_place(place)
        return
    content = desk.task_at(place, task)
    if content is not None and _to_waiting(desk, place.path, task, _lane(desk, content, task), content, "WAITING"):
        desk.view.forget_place(place)


def _to_waiting(
    desk: Desk, src: str, name: TaskName, lane: str, task: Task | None, event: str, **detail: str
) -> bool:
    """Move a token into waiting/, unless its lane there is known to be closed to this user; True when it is there."""
    if _directories(lane)[0] in desk.view.blocked:
        desk.step.deny()
        return False
    moved = desk.to_waiting(src, name, lane, task, event, **detail)
    _withheld(desk, moved, lane)
    return bool(moved)


def _lane(desk: Desk, content: Task, name: TaskName) -> str:
    """Return the lane of a returned attempt; with more memory, if earlier ones ran out of it. Errors: OSError."""
    policy = retry_policy(content, desk.store.settings)
    if not may_be_raised(content, name, policy):
        return content.lane_name
    desk.ledger = desk.ledger or Ledger(desk.store.fs)
    try:
        return raised(content, name, policy, desk.ledger.before(name.id, name.attempt)).encode()
    except BadName:  # a digit more than a lane's name has room for
        return content.lane_name


def fail_refused(desk: Desk) -> None:
    """Fail tasks that the gates refuse for good, and ready ones whose deadline has passed. Errors: OSError."""
    failed = 0
    while failed < PER_STEP and not desk.step.cut and (refused := desk.backlog.refused()):
        before = failed
        for entry, verdict in desk.some(certain(desk, refused), "refused"):
            place = waiting_place(entry.lane, entry.file)
            if place.directory in desk.view.blocked:
                continue
            error, status = _error(desk, entry, verdict), end_conditions.status_of(verdict.code)
            with desk.faults.handling("refused task", entry.name.id, entry.name.id, entry.name.attempt):
                failed += desk.fail(place, entry.name, error, status)
                _began_with(desk, entry.name.id, error.origin)
        if failed == before:
            break  # none could be moved just now; each task that fails may make others fail, hence the loop
    for task_key in desk.some(end_conditions.overdue(desk.learned.deadlines, desk.step.now.wall), "overdue"):
        with desk.faults.handling("late task", task_key, task_key):
            fail_late(desk, task_key)


def _error(desk: Desk, entry: Entry, verdict: Refuse) -> Error:
    """Return why a refused task fails. That of a failure by dependency names the task with which it began."""
    error = Error(code=verdict.code, message=verdict.reason)
    failed = [need for need in entry.conditions.needs if desk.view.parent(need) is Parent.FAILED]
    if verdict.code is not Code.DEPENDENCY_FAILED or not failed:
        return error
    origin = _origin(desk, failed[0])
    began = f"; it began with {origin}" if key(origin) not in map(key, failed) else ""
    return error.model_copy(update={"message": f"{error.message}{began}", "origin": origin})


def _origin(desk: Desk, parent: str) -> str:
    """Return the task with which the failure of this one began; itself, where that is not known."""
    place = desk.view.where.get(key(parent))
    if place is None or place.state is not State.FAILED:
        return parent
    if place.name not in desk.learned.origins:
        record = read_record(desk.store.fs, layout.join(layout.RESULTS, place.name))
        error = record.error if record is not None else None
        _began_with(desk, parent, (error.origin if error is not None else None) or parent)
    return desk.learned.origins.get(place.name, parent)


def _began_with(desk: Desk, task_id: str, origin: str | None) -> None:
    place = desk.view.where.get(key(task_id))
    if origin is not None and place is not None and place.state is State.FAILED:
        desk.learned.learn_origin(place.name, origin)


def fail_late(desk: Desk, task_key: str) -> None:
    """Fail a task whose deadline has passed, if it is where the leader has to end it."""
    found = desk.view.where.get(task_key)
    outcome = None if found is None else end_conditions.too_late(found.state)
    if found is None or outcome is None:
        return
    task = desk.view.ready[found.directory.partition("/")[2]][found.name]
    desk.fail(found, task, Error(code=Code.DEADLINE, message=outcome.message), outcome.status)


def gather_facts(desk: Desk) -> None:
    """Have the gates gather their part of the facts: once a step, and before anything is judged."""
    settings, before = desk.store.settings, desk.ruled_by
    desk.backlog.gathered, desk.ruled_by = gather(_known(desk)), settings
    if before is not None and settings is not before and draws_of(settings) != draws_of(before):
        desk.backlog.regroup(desk.step.now, desk.breathe)
    standing = sum(map(len, desk.view.ready.values()))
    desk.backlog.turns.begin(desk.step.now.wall, settings.fair, standing)
    if before is not None and settings.fair != before.fair:
        desk.learned.forget_shares()  # they are read again
        for number, (task_key, entry) in enumerate(list(desk.backlog.items()), 1):
            desk.backlog.join(task_key, desk.share_of(task_key, entry.file))
            if not number % BREATHE_EVERY:
                desk.breathe()


def _known(desk: Desk) -> Known:
    more = {breaker_gate.NAME: desk.breakers, budget_gate.NAME: desk.book, lock_gate.NAME: desk.backlog.locks.book}
    return Known(desk.step.now.wall, desk.store.settings, tuple(desk.view.requests), desk.request_ends, more)


def lane_facts(desk: Desk, lanes: Iterable[str]) -> dict[str, TypeFacts]:
    """Return the facts of these lanes, over one stock, which counts the moves of this step as they are made."""
    known, stock, starts = _known(desk), desk.usage.stock, desk.starts
    more, unserved = desk.backlog.gathered, desk.fleet.unserved
    facts = LaneFacts(known, desk.resources, stock, more, starts.opens, unserved, starts.passed_over)
    return {lane: facts.of(lane) for lane in sorted(lanes)}


def is_halted(desk: Desk) -> bool:
    """Whether a halt stands."""
    return halted_by(desk.view.requests)


def hold_back(desk: Desk) -> None:
    """Take back ready tasks whose type may not run now, or that more urgent work displaces. Errors: OSError."""
    facts = lane_facts(desk, desk.view.ready)
    ready = {lane: list(names.values()) for lane, names in desk.view.ready.items()}
    for lane, task in desk.some(holdbacks(ready, facts, desk.resources), "held back"):
        _hold(desk, task, lane)
    window = desk.store.settings.ready.window
    for lane, tasks in desk.some(desk.view.ready.items(), "lanes"):
        for task in displaced(list(tasks.values()), desk.backlog, lane, facts[lane], window, desk.step.now):
            _hold(desk, task, lane)
    _make_room(desk)


def _make_room(desk: Desk) -> None:
    """Take back ready tasks where shares begin to take turns: those that stand there are taken by age alone."""
    turns, room = desk.backlog.turns, _window(desk)
    if not turns.waiting or room == desk.store.settings.ready.window:
        return
    for lane, tasks in desk.some(desk.view.ready.items(), "crowded lanes"):
        if len(tasks) >= 2 * room and desk.view.blocked.isdisjoint(_directories(lane)):
            files = [(file, desk.share_of(key(task.id), file)) for file, task in tasks.items()]
            for file in crowding(files, room):
                _hold(desk, tasks[file], lane)


def _window(desk: Desk, new: str = UNREAD) -> int:
    """Return how many tasks of a lane are ready. new: the share of one more that wants to start."""
    turns, window = desk.backlog.turns, desk.store.settings.ready.window
    if not turns.rivals(lambda: _ready_shares(desk), new):
        return window
    return turns.window(desk.usage.slots, window)


def _ready_shares(desk: Desk) -> Iterator[str]:
    for tasks in desk.view.ready.values():
        for file, task in tasks.items():
            yield desk.share_of(key(task.id), file)


def hold_one(desk: Desk, place: Place, task: TaskName) -> None:
    """Take one ready task back, since a request or another task holds it. Errors: OSError."""
    _hold(desk, task, place.directory.partition("/")[2])


def _gives_way(desk: Desk, one: Standing, to: TaskName) -> bool:
    """Take a ready task back for a more urgent one; whether no worker was quicker."""
    return _hold(desk, one.task, one.lane, **{"for": to.id})


def _hold(desk: Desk, task: TaskName, lane: str, **detail: str) -> bool:
    """Take a ready task back; whether this leader has done it, since what is not found may run."""
    place = Place(State.READY, layout.join(layout.READY, lane), task.encode())
    return bool(desk.contained("ready task", place, task, lambda: _hold_at(desk, place, task, lane, detail)))


def _hold_at(desk: Desk, place: Place, task: TaskName, lane: str, detail: Mapping[str, str]) -> bool:
    content = desk.task_at(place, task) if task.conditional else None
    if task.conditional and content is None:
        return False
    held = _to_waiting(desk, place.path, task, own_lane(lane), content, "HELD", **detail)
    if held:
        _stands_back(desk, place, task, lane)
    return held


def _stands_back(desk: Desk, place: Place, task: TaskName, lane: str) -> None:
    """Record that a task of this lane is in ready/ no more, and has not started."""
    desk.view.forget_place(place)
    desk.usage.give_back(desk.resources.uses(lane))
    desk.starts.stays(task)
    desk.backlog.turns.goes_back()


def rank_anew(desk: Desk, place: Place, task: TaskName, rank: int) -> bool:
    """Give a waiting or ready task another rank; whether it has that. It waits then, and a rest between two attempts
    begins anew. Errors: OSError.
    """
    content = desk.task_at(place, task) if task.conditional else None
    if task.conditional and content is None:
        return False
    lane, anew = place.directory.partition("/")[2], replace(task, rank=rank)
    if not _to_waiting(desk, place.path, anew, own_lane(lane), content, "RANKED", priority=f"{rank_of(0) - rank}"):
        if not desk.step.denied:
            desk.doubt(key(task.id))  # a worker was quicker, or it is not moved yet: the next look shows which
        return False
    if place.state is State.READY:
        _stands_back(desk, place, task, lane)
    return True


def reject_copies(desk: Desk) -> None:
    """Reject ready tokens whose task has completed: these were restored from a copy. Errors: OSError."""
    for lane, tasks in desk.view.ready.items():
        for file, task in list(tasks.items()):
            place = Place(State.READY, layout.join(layout.READY, lane), file)
            with desk.faults.handling("ready copy of the task", task.id, task.id, task.attempt):
                if has_completed(desk, task.id) and reject_twin(desk, place.path, task.id):
                    desk.view.forget_place(place)


def promote(desk: Desk) -> int:
    """Fill the windows of ready/ with tasks that may run now; return how many were chosen. Errors: OSError."""
    others = {lane: found for lane in desk.backlog.lanes() if (found := _others(desk, lane))}
    instead = Instead(lambda lane: others.get(lane, ()))
    lanes = {
        lane: LaneView(kind_in(lane), tuple(task.rank for task in desk.view.ready.get(lane, {}).values()))
        for lane in (*desk.backlog.lanes(), *{other for found in others.values() for other in found})
        if desk.view.blocked.isdisjoint(_directories(lane))
    }
    kept = desk.backlog.locks.book.line.lanes()
    facts = with_shares(desk, lane_facts(desk, {*lanes, *kept}))
    shut = {lane for lane in kept if not isinstance(judge_type(kind_in(lane), facts[lane]), Pass)}
    desk.backlog.locks.pass_over(shut)
    refused = desk.backlog.refusals
    way, window = Way(partial(_standing, desk), partial(_running, desk)), desk.store.settings.ready.window
    if desk.backlog.turns.waiting:
        window = _window(desk)
    chosen = promotions(desk.backlog, lanes, facts, window, desk.step.now, way, desk.resources.uses, instead)
    desk.usage.kept, desk.usage.wanted = way.kept, way.wanted
    if desk.backlog.refusals > refused:
        desk.step.change()  # the next step fails tasks that a gate refused just now
    begun = 0
    try:
        for entry in desk.some(chosen):
            place, made = waiting_place(entry.lane, entry.file), way.made.get(entry.file, ())
            into = instead.taken.get(entry.file, entry.lane)
            cleared = desk.contained("waiting task", place, entry.name, partial(_promote, desk, entry, into, made))
            begun += 1
            if made and not cleared:
                break  # the next ones were chosen as if what these have were free
    finally:
        for left in chosen[begun:]:
            desk.backlog.put_back(left)
    return begun


def _others(desk: Desk, lane: str) -> list[str]:
    """Return the lanes to which tasks of this one may go instead. Of a task whose type draws on no budget per batch
    the leader need not know the batch, so it goes to no type that does.
    """
    if not desk.fleet.instead:
        return []
    settings, own = desk.store.settings, kind_in(lane)
    drawn = {kind: settings.of(kind).budgets for kind in (own, *desk.fleet.instead.get(own, ()))}
    batched = {name for name, budget in settings.budgets.items() if budget.per == "batch"}
    return [
        other
        for other in lanes_instead(lane, desk.fleet.instead)
        if batched.isdisjoint(drawn[kind_in(other)]) or not batched.isdisjoint(drawn[own])
    ]


def _standing(desk: Desk) -> Iterator[Standing]:
    """Yield the ready tasks that may make way."""
    for lane, tasks in desk.view.ready.items():
        if not desk.view.blocked.isdisjoint(_directories(lane)):
            continue
        for task in tasks.values():
            yield Standing(task, lane, desk.learned.conditions(key(task.id)) if task.conditional else NO_CONDITIONS)


def _running(desk: Desk) -> Iterator[Standing]:
    """Yield the claimed tasks."""
    idle = desk.fleet.idle(desk.step.now.monotonic)
    for node, tasks in desk.view.claimed.items():
        for task in tasks.values():
            lane, conditions = desk.learned.lanes.get(key(task.id), ""), desk.learned.conditions(key(task.id))
            waits = key(task.id) in desk.fleet.parents
            yield Standing(task, lane, conditions, waits, key(task.id) in idle or node in desk.fleet.asleep)


def _promote(desk: Desk, entry: Entry, into: str, makes_way: Collection[Standing] = ()) -> bool:
    """Move a task into a lane of ready/, once those that make way for it are back in waiting/; return whether they
    are.
    """
    name, file, lane = entry.name, entry.file, entry.lane
    if not may_begin(desk, entry) or not all(_gives_way(desk, one, name) for one in makes_way):
        desk.backlog.put_back(entry)
        return False
    moved = move_into_lane(desk.store, "READY", layout.waiting(lane, file), layout.READY, into, file)
    if desk.went(moved, name.id):
        desk.backlog.remove(key(name.id))
        stands_ready(desk, name, file, into)
        desk.learned.learn_demand(key(name.id), entry.conditions)
        detail = {} if into == lane else {"lane": into, "type": kind_in(into), "instead_of": kind_in(lane)}
        desk.journal.note("READY", name.id, name.attempt, **detail)
    elif _withheld(desk, moved, into):
        desk.backlog.put_back(entry)
    else:
        _may_start(desk, name, into)
        if into != lane:
            desk.learned.learn_lane(key(name.id), into)  # if it is there, it counts as what that lane uses
        desk.doubt(key(name.id))  # moved by another leader, or not moved yet: the listings will show it
    return True


def _directories(lane: str) -> tuple[str, str]:
    """Return where the tasks of a lane are until they are claimed."""
    return layout.join(layout.WAITING, lane), layout.join(layout.READY, lane)


def _withheld(desk: Desk, moved: Moved, lane: str) -> bool:
    """Whether a move was denied since this user may not list a directory of the lane; then moves in that lane stop
    until that is over. Errors: OSError.
    """
    if not isinstance(moved.error, PermissionError):
        return False
    for directory in _directories(lane):
        names_in(desk.store.fs, directory, desk.view.blocked)
    return not desk.view.blocked.isdisjoint(_directories(lane))


def stands_ready(desk: Desk, name: TaskName, file: str, lane: str) -> None:
    """Record that the leader itself has just moved the token into this lane of ready/."""
    desk.learned.learn_lane(key(name.id), lane)
    desk.usage.take(desk.resources.uses(lane))
    _may_start(desk, name, lane)
    desk.view.stand_ready(name, file, lane)


def _may_start(desk: Desk, name: TaskName, lane: str) -> None:
    """Record that a token is in ready/, or may be: it may start at any moment."""
    if desk.resources.starts(lane):
        desk.starts.may_start(name, lane)


def place_admitted(desk: Desk, src: str, admit: Admit, drop: str) -> bool:
    """Move a new task from `src` into ready/ if nothing prevents it, else into waiting/; True when it is there."""
    name = admit.name
    desk.view.members.see(key(name.id), admit.task.batch)
    told = {"drop": legible(drop)} | ({"batch": admit.task.batch} if admit.task.batch else {})
    if not room_at_once(desk, admit):
        if _to_waiting(desk, src, name, admit.lane, admit.task, "ADMITTED", **told):
            return True
        desk.view.members.doubt(key(name.id))
        return False
    file = name.encode()
    moved = move_into_lane(desk.store, "ADMITTED", src, layout.READY, admit.lane, file)
    if desk.went(moved, name.id):
        stands_ready(desk, name, file, admit.lane)
        desk.journal.note("ADMITTED", name.id, name.attempt, lane=admit.lane, file=file, ready=True, **told)
    else:
        # It may be ready all the same, and claimed already: it counts until everything has been listed.
        desk.usage.take(desk.resources.uses(admit.lane))
        _may_start(desk, name, admit.lane)
        desk.view.members.doubt(key(name.id))
        desk.step.doubt()
        _withheld(desk, moved, admit.lane)
    desk.backlog.turns.start(desk.share_of(key(name.id), file))
    return bool(moved)


def room_at_once(desk: Desk, admit: Admit) -> bool:
    """Whether a task that was just admitted may go straight to ready/: nothing before it, every gate open."""
    if admit.name.conditional or desk.backlog.draws(admit.task.kind) or desk.backlog.best(admit.lane) is not None:
        return False
    ready = desk.view.ready.get(admit.lane, {})
    if _directories(admit.lane)[1] in desk.view.blocked or desk.usage.keeps(desk.resources.uses(admit.lane)):
        return False
    if len(ready) >= desk.store.settings.ready.window:
        return False
    if len(ready) >= LEAST and len(ready) >= _window(desk, desk.share_of(key(admit.name.id), admit.name.encode())):
        return False  # others wait for their turn, or stand there from before
    if (shared := desk.resources.shared(admit.lane)) and desk.backlog.any_lane(
        lambda lane: not shared.isdisjoint(desk.resources.shared(lane))
    ):
        return False  # a task in another lane may wait for the same units
    lists, kind = desk.fleet.instead, admit.task.kind
    if lists and desk.backlog.any_lane(lambda lane: kind in lists.get(kind_in(lane), ())):
        return False  # one of another type may be about to go as this one
    facts = with_shares(desk, lane_facts(desk, [admit.lane, *rivals(desk)]))[admit.lane]
    entry = Entry(admit.name.encode(), admit.lane, NO_CONDITIONS)
    let = isinstance(judge_type(admit.task.kind, facts), Pass)
    return let and desk.backlog.would_let(entry, facts, desk.step.now)


# Which tasks may fail, be skipped or begin because others have ended, where a server may forget that in a power
# cut.


Refused = list[tuple[Entry, Refuse]]
# The ended tasks, by their paths, that together prove what is decided. Of archived ones that was settled long ago.
Proof = frozenset[str]


def certain(desk: Desk, refused: Refused) -> Refused:
    """Return the refused tasks that may end now; the others are asked about again. Errors: OSError, ShutOut."""
    if not desk.store.fs.forgets:
        return refused
    proofs = {entry.file: list(_proofs(desk, entry, verdict)) for entry, verdict in refused if _for_parents(verdict)}
    settled = _settled(desk, proofs.values())
    return [
        (entry, verdict)
        for entry, verdict in refused
        if entry.file not in proofs or any(proof <= settled for proof in proofs[entry.file])
    ]


def may_begin(desk: Desk, entry: Entry) -> bool:
    """Whether a task that runs after a failure may begin: any other may. Errors: OSError, ShutOut."""
    named = entry.conditions.needs_failed
    if not named or not desk.store.fs.forgets:
        return True
    proofs = list(_each(desk, named, Parent.FAILED))
    settled = _settled(desk, [proofs])
    return any(proof <= settled for proof in proofs)


def _settled(desk: Desk, proofs: Iterable[list[Proof]]) -> set[str]:
    """Return the paths that no power cut takes back, after a durable write if there are new ones to ask about."""
    settled, new = desk.learned.settled, set[str]().union(*(proof for some in proofs for proof in some))
    new -= settled
    if new:
        desk.store.settle(layout.FAILED, {})
        there = {layout.join(layout.FAILED, name) for name in desk.view.failed}
        there |= {layout.join(layout.COMPLETED, name) for name in desk.view.completed}
        settled &= there  # the others were archived or retried
        for state in (layout.COMPLETED, layout.FAILED):
            if any(path.startswith(f"{state}/") for path in new):
                settled |= new.intersection(layout.join(state, name) for name in desk.store.fs.list(state))
        if not new <= settled:
            desk.step.doubt()
    return settled


def _for_parents(verdict: Refuse) -> bool:
    return verdict.code in (Code.DEPENDENCY_FAILED, Code.SKIPPED)


def _proofs(desk: Desk, entry: Entry, verdict: Refuse) -> Iterator[Proof]:
    """Yield what proves that the task ends so: one of its dependencies, or all ends of its `after_failed`."""
    if verdict.gate == dependency_gates.AFTER_FAILED.name:
        yield Proof().union(*(_proof(desk, parent) for parent in entry.conditions.needs_failed))
    else:
        skipped = verdict.code is Code.SKIPPED
        yield from _each(desk, entry.conditions.needs, Parent.SKIPPED if skipped else Parent.FAILED)


def _each(desk: Desk, parents: Iterable[str], state: Parent) -> Iterator[Proof]:
    """Yield the end of each of these tasks that has ended so."""
    yield from (_proof(desk, parent) for parent in parents if desk.view.parent(parent) is state)


def _proof(desk: Desk, parent: str) -> Proof:
    place = desk.view.where.get(key(parent))
    return Proof() if place is None or place.state not in (State.COMPLETED, State.FAILED) else Proof([place.path])


# The slots of each class at this moment, as the gate `class` is told them.


def rivals(desk: Desk) -> list[str]:
    """Return the lanes whose tasks may want the same slots as a new task."""
    return desk.backlog.lanes() if desk.store.settings.classes else []


def with_shares(desk: Desk, facts: dict[str, TypeFacts]) -> dict[str, TypeFacts]:
    """Return the facts with the slots of each class; a class wants slots if nothing but a slot holds its tasks."""
    settings = desk.store.settings
    if not settings.classes or not facts:
        return facts
    free = (lane for lane, own in facts.items() if isinstance(judge_type(kind_in(lane), own), Pass))
    lanes = [parsed for lane in free if desk.backlog.best(lane) and (parsed := parse_lane(lane)) is not None]
    wants = frozenset(class_used(lane, settings) for lane in lanes)
    stock = replace(desk.usage.stock, shares=shares_of(settings, desk.usage.slots, wants))
    return {lane: replace(own, stock=stock) for lane, own in facts.items()}
