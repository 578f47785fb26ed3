"""returned/ → waiting/ → ready/; fails tasks that can never run, and takes ready ones back if a gate closes.

Law: a task is put into ready/ only if every gate lets it pass at that moment. A move to ready/ whose outcome is
unknown counts as made, until the listings show the place of the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spoold.master.dependents import certain
from spoold.master.desk import Desk
from spoold.master.learning import unread
from spoold.master.place import Place, waiting_place
from spoold.master.rejecting import reject_twin
from spoold.protocol import layout
from spoold.protocol.errors import BadName, legible
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key
from spoold.protocol.result import Code, Error
from spoold.protocol.task import Task
from spoold.rules.attempts import ends
from spoold.rules.attempts.memory import may_be_raised, raised
from spoold.rules.attempts.policy import retry_policy
from spoold.rules.entry.admission import Admit
from spoold.rules.gates.closing import halted_by
from spoold.rules.gates.facts import NO_CONDITIONS, Known, TypeFacts, facts_of_type
from spoold.rules.gates.registry import gather, judge_type
from spoold.rules.gates.verdicts import Pass
from spoold.rules.scheduling.backlog import Entry
from spoold.rules.scheduling.promoting import LaneView, displaced, holdbacks, promotions
from spoold.rules.scheduling.resources import capacities, uses_of
from spoold.store.absence import names_in
from spoold.store.lane_moves import move_into_lane
from spoold.store.ledger import Ledger
from spoold.store.mover import Moved

PER_STEP = 1000
UNREAD = (
    "{} cannot be read, so it counts for every type that has a max_concurrent; let the user that the master runs as "
    "read it (chmod, chown)"
)


def place_returned(desk: Desk) -> None:
    """Move every attempt that was handed back to waiting/; its rest counts from now. Errors: OSError."""
    for name, task in sorted(desk.view.returned.items()):
        desk.breathe()
        place = Place(State.RETURNED, layout.RETURNED, name)
        if desk.has_completed(task.id):
            if reject_twin(desk, place.path, task.id):
                desk.view.forget_place(place)
            continue
        content = desk.task_at(place, task)
        if content is None:
            continue
        lane = _lane(desk, content, task)
        if _to_waiting(desk, place.path, task, lane, content, "WAITING"):
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
    while failed < PER_STEP and (refused := desk.backlog.refused()):
        before = failed
        for entry, verdict in certain(desk, refused):
            desk.breathe()
            place = waiting_place(entry.lane, entry.file)
            if place.directory in desk.view.blocked:
                continue
            error = Error(code=verdict.code, message=verdict.reason)
            failed += desk.fail(place, entry.name, error, ends.status_of(verdict.code))
        if failed == before:
            break  # none could be moved just now; each task that fails may make others fail, hence the loop
    for task_key in ends.overdue(desk.learned.deadlines, desk.step.now.wall):
        fail_late(desk, task_key)


def fail_late(desk: Desk, task_key: str) -> None:
    """Fail a task whose deadline has passed, if it is where the leader has to end it."""
    found = desk.view.where.get(task_key)
    outcome = None if found is None else ends.too_late(found.state)
    if found is None or outcome is None:
        return
    task = desk.view.ready[found.directory.partition("/")[2]][found.name]
    desk.fail(found, task, Error(code=Code.DEADLINE, message=outcome.message), outcome.status)


def count_active(desk: Desk) -> None:
    """Count what the ready and the claimed tasks use; moves of this step are then counted as they are made.

    Uses that are in doubt are counted apart: while the doubt lasts, nothing new may become ready in their place.
    """
    usage = desk.usage
    usage.begin(capacities(desk.store.settings), (uses_of(kind_in(lane)) for lane in _adrift(desk)))
    for lane, names in desk.view.ready.items():
        usage.take(uses_of(kind_in(lane)), len(names))
    for names in desk.view.claimed.values():
        for task in names.values():
            usage.take(uses_of(kind_in(desk.learned.lanes.get(key(task.id), ""))))
    if usage.stock.capacity:
        desk.report.notice(*map(UNREAD.format, unread(desk)))


def gather_facts(desk: Desk) -> None:
    """Have the gates gather their part of the facts: once a step, and before anything is judged."""
    desk.backlog.gathered = gather(_known(desk))


def _known(desk: Desk) -> Known:
    return Known(desk.step.now.wall, desk.store.settings, tuple(desk.view.requests), desk.pause_ends)


def _adrift(desk: Desk) -> Iterator[str]:
    """Yield the lanes of tasks that were ready or claimed, or about to be, and that were seen nowhere since.

    A listing can miss a claim while its worker gives it another name, so such a task may not have ended.
    """
    missing = {task_key: desk.view.where.get(task_key) for task_key in desk.missing.keys}
    for task_key, place in (*desk.view.on_the_way.items(), *missing.items()):
        if place is not None and place.state in (State.WAITING, State.READY):
            yield place.directory.partition("/")[2]
        elif place is not None and place.state is State.CLAIMED:
            yield desk.learned.lanes.get(task_key, "")


def type_facts(desk: Desk, kinds: Iterable[str]) -> dict[str, TypeFacts]:
    """Return the facts of these types, over one stock, which counts the moves of this step as they are made."""
    known, stock, gathered = _known(desk), desk.usage.stock, desk.backlog.gathered
    return {kind: facts_of_type(kind, known, stock, gathered) for kind in sorted(set(kinds))}


def is_halted(desk: Desk) -> bool:
    """Whether a halt stands."""
    return halted_by(desk.view.requests)


def hold_back(desk: Desk) -> None:
    """Take back ready tasks whose type may not run now, or that more urgent work displaces. Errors: OSError."""
    types = type_facts(desk, map(kind_in, desk.view.ready))
    for kind, facts in types.items():
        lanes = [lane for lane in desk.view.ready if kind_in(lane) == kind]
        ready = {task: lane for lane in lanes for task in desk.view.ready[lane].values()}
        for task in holdbacks(list(ready), facts, kind):
            _hold(desk, task, ready[task])
    window = desk.store.settings.ready.window
    for lane, tasks in desk.view.ready.items():
        for task in displaced(list(tasks.values()), desk.backlog, lane, types[kind_in(lane)], window, desk.step.now):
            _hold(desk, task, lane)


def _hold(desk: Desk, task: TaskName, lane: str) -> None:
    desk.breathe()
    place = Place(State.READY, layout.join(layout.READY, lane), task.encode())
    content = desk.task_at(place, task) if task.conditional else None
    if task.conditional and content is None:
        return
    if _to_waiting(desk, place.path, task, lane, content, "HELD"):
        desk.view.forget_place(place)
        desk.usage.give_back(uses_of(kind_in(lane)))


def reject_copies(desk: Desk) -> None:
    """Reject ready tokens whose task has completed: these were restored from a copy. Errors: OSError."""
    for lane, tasks in desk.view.ready.items():
        for file, task in list(tasks.items()):
            place = Place(State.READY, layout.join(layout.READY, lane), file)
            if desk.has_completed(task.id) and reject_twin(desk, place.path, task.id):
                desk.view.forget_place(place)


def promote(desk: Desk) -> int:
    """Fill the windows of ready/ with tasks that may run now; return how many were chosen. Errors: OSError."""
    lanes = {
        lane: LaneView(kind_in(lane), tuple(task.rank for task in desk.view.ready.get(lane, {}).values()))
        for lane in desk.backlog.lanes()
        if desk.view.blocked.isdisjoint(_directories(lane))
    }
    facts = type_facts(desk, map(kind_in, lanes))
    refused = desk.backlog.refusals
    chosen = promotions(desk.backlog, lanes, facts, desk.store.settings.ready.window, desk.step.now)
    if desk.backlog.refusals > refused:
        desk.step.change()  # the next step fails tasks that a gate refused just now
    for index, entry in enumerate(chosen):
        try:
            desk.breathe()
            _promote(desk, entry)
        except OSError:
            for left in chosen[index:]:
                desk.backlog.put_back(left)
            raise
    return len(chosen)


def _promote(desk: Desk, entry: Entry) -> None:
    name, file, lane = entry.name, entry.file, entry.lane
    moved = move_into_lane(desk.store, "READY", layout.waiting(lane, file), layout.READY, lane, file)
    if desk.went(moved, name.id):
        desk.backlog.remove(key(name.id))
        stands_ready(desk, name, file, lane)
        desk.journal.note("READY", name.id, name.attempt)
    elif _withheld(desk, moved, lane):
        desk.backlog.put_back(entry)
    else:
        desk.doubt(key(name.id))  # moved by another leader, or not moved yet: the listings will show it


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
    desk.usage.take(uses_of(kind_in(lane)))
    desk.view.stand_ready(name, file, lane)


def place_admitted(desk: Desk, src: str, admit: Admit, drop: str) -> bool:
    """Move a new task from `src` into ready/ if nothing prevents it, else into waiting/; True when it is there."""
    name = admit.name
    if not room_at_once(desk, admit):
        return _to_waiting(desk, src, name, admit.lane, admit.task, "ADMITTED", drop=legible(drop))
    file = name.encode()
    moved = move_into_lane(desk.store, "ADMITTED", src, layout.READY, admit.lane, file)
    if desk.went(moved, name.id):
        stands_ready(desk, name, file, admit.lane)
        desk.journal.note("ADMITTED", name.id, name.attempt, lane=admit.lane, drop=legible(drop))
    else:
        # It may be ready all the same, and claimed already: it counts until everything has been listed.
        desk.usage.take(uses_of(kind_in(admit.lane)))
        desk.step.doubt()
        _withheld(desk, moved, admit.lane)
    return bool(moved)


def room_at_once(desk: Desk, admit: Admit) -> bool:
    """Whether a task that was just admitted may go straight to ready/: nothing before it, every gate open."""
    if admit.task.conditional or desk.backlog.best(admit.lane) is not None:
        return False
    ready = desk.view.ready.get(admit.lane, {})
    if _directories(admit.lane)[1] in desk.view.blocked:
        return False
    if len(ready) >= desk.store.settings.ready.window:
        return False
    kind = admit.task.kind
    facts = type_facts(desk, [kind])[kind]
    entry = Entry(admit.name.encode(), admit.lane, NO_CONDITIONS)
    return isinstance(judge_type(kind, facts), Pass) and desk.backlog.would_let(entry, facts, desk.step.now)
