"""returned/ → waiting/ → ready/, failing what can never run, and holding back when a gate closes again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from spoold.master.desk import Desk
from spoold.master.rejecting import reject_twin
from spoold.master.view import Place, waiting_place
from spoold.protocol import layout
from spoold.protocol.errors import legible
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key
from spoold.protocol.request import halted_by, paused_by
from spoold.protocol.result import Code, Error, Status
from spoold.rules.admission import Admit
from spoold.rules.backlog import Entry, LaneView, displaced, holdbacks, promotions
from spoold.rules.gates import PASS, LaneFacts, judge_type
from spoold.rules.outcome import past_deadline
from spoold.store.lanes import move_into_lane

PER_STEP = 1000


def place_returned(desk: Desk) -> None:
    """Every attempt that was handed back waits again; its rest counts from now. Errors: OSError."""
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
        lane = content.lane.encode()
        if desk.to_waiting(place.path, task, lane, content, "WAITING"):
            desk.view.forget_place(place)


def fail_refused(desk: Desk) -> None:
    """Tasks that the gates refuse for good, and ready ones whose deadline has passed, fail. Errors: OSError."""
    failed = 0
    while failed < PER_STEP and (refused := desk.backlog.refused()):
        before = failed
        for entry, verdict in refused:
            desk.breathe()
            place = waiting_place(entry.lane, entry.file)
            status = Status.TIMEOUT if verdict.code is Code.DEADLINE else Status.FAILURE
            failed += desk.fail(place, entry.name, Error(code=verdict.code, message=verdict.reason), status)
        if failed == before:
            break  # none could be moved just now; each one that can may refuse others, hence the loop
    for task_key in [k for k, moment in desk.deadlines.items() if moment <= desk.now.wall]:
        fail_late(desk, task_key)


def fail_late(desk: Desk, task_key: str) -> None:
    """A ready task whose deadline has passed fails; a claimed one is its worker's to stop."""
    found = desk.view.where.get(task_key)
    if found is None or found.state is not State.READY:
        return
    task = desk.view.ready[found.directory.partition("/")[2]][found.name]
    outcome = past_deadline("its deadline passed before a worker took it")
    desk.fail(found, task, Error(code=Code.DEADLINE, message=outcome.message), outcome.status)


def count_active(desk: Desk) -> None:
    """Count what is ready and claimed by type; moves of this step are then counted as they are made."""
    desk.active.clear()
    for lane, names in desk.view.ready.items():
        desk.active[kind_of(lane)] += len(names)
    for names in desk.view.claimed.values():
        for task in names.values():
            desk.active[kind_of(desk.lanes.get(key(task.id), ""))] += 1


def type_facts(desk: Desk, kinds: Iterable[str]) -> dict[str, LaneFacts]:
    """What holds for each of these types."""
    paused = paused_by(desk.view.requests)
    halted, settings = is_halted(desk), desk.store.settings
    return {
        kind: LaneFacts(paused, halted, settings.of(kind).max_concurrent, desk.active[kind])
        for kind in sorted(set(kinds))
    }


def is_halted(desk: Desk) -> bool:
    """Whether a halt stands."""
    return halted_by(desk.view.requests)


@lru_cache(maxsize=4096)
def kind_of(lane: str) -> str:
    """The type of a lane; empty for a name that is none."""
    parsed = parse_lane(lane)
    return parsed.type if parsed else ""


def hold_back(desk: Desk) -> None:
    """What stands ready though its type may not run now, or more urgent work waits, goes back. Errors: OSError."""
    for kind, facts in type_facts(desk, map(kind_of, desk.view.ready)).items():
        lanes = [lane for lane in desk.view.ready if kind_of(lane) == kind]
        ready = {task: lane for lane in lanes for task in desk.view.ready[lane].values()}
        for task in holdbacks(list(ready), facts, kind):
            _hold(desk, task, ready[task])
    window = desk.store.settings.ready.window
    for lane, tasks in desk.view.ready.items():
        for task in displaced(list(tasks.values()), desk.backlog.best(lane), window):
            _hold(desk, task, lane)


def _hold(desk: Desk, task: TaskName, lane: str) -> None:
    desk.breathe()
    place = Place(State.READY, layout.join(layout.READY, lane), task.encode())
    content = desk.task_at(place, task) if task.conditional else None
    if task.conditional and content is None:
        return
    if desk.to_waiting(place.path, task, lane, content, "HELD"):
        desk.view.forget_place(place)
        desk.active[kind_of(lane)] -= 1


def reject_copies(desk: Desk) -> None:
    """What stands ready though its task has completed was restored from a copy, and goes. Errors: OSError."""
    for lane, tasks in desk.view.ready.items():
        for file, task in list(tasks.items()):
            place = Place(State.READY, layout.join(layout.READY, lane), file)
            if desk.has_completed(task.id) and reject_twin(desk, place.path, task.id):
                desk.view.forget_place(place)


def promote(desk: Desk) -> int:
    """Fill the windows of ready/ with what may run now; with how many. Errors: OSError."""
    lanes = {
        lane: LaneView(kind_of(lane), tuple(task.rank for task in desk.view.ready.get(lane, {}).values()))
        for lane in desk.backlog.lanes()
    }
    facts = type_facts(desk, map(kind_of, lanes))
    chosen = promotions(desk.backlog, lanes, facts, desk.store.settings.ready.window)
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
    moved = move_into_lane(desk.store, layout.waiting(lane, file), layout.READY, lane, file)
    if desk.went(moved, name.id):
        desk.backlog.remove(key(name.id))
        stands_ready(desk, name, file, lane)
        desk.journal.note("READY", name.id, name.attempt)
    else:
        desk.doubt(key(name.id))  # moved by another leader, or not moved yet: the listings will tell


def stands_ready(desk: Desk, name: TaskName, file: str, lane: str) -> None:
    """The leader itself has just moved the token into this lane of ready/."""
    desk.lanes[key(name.id)] = lane
    desk.active[kind_of(lane)] += 1
    desk.view.stand_ready(name, file, lane)


def place_admitted(desk: Desk, src: str, admit: Admit, drop: str) -> bool:
    """A new task at `src` goes into ready/ if nothing stands in its way, else into waiting/."""
    name = admit.name
    if not room_at_once(desk, admit):
        return bool(desk.to_waiting(src, name, admit.lane, admit.task, "ADMITTED", drop=legible(drop)))
    file = name.encode()
    moved = move_into_lane(desk.store, src, layout.READY, admit.lane, file)
    if desk.went(moved, name.id):
        stands_ready(desk, name, file, admit.lane)
        desk.journal.note("ADMITTED", name.id, name.attempt, lane=admit.lane, drop=legible(drop))
    else:
        # It may be ready all the same, and claimed already: it counts until everything has been listed.
        desk.active[kind_of(admit.lane)] += 1
        desk.unsure = True
    return bool(moved)


def room_at_once(desk: Desk, admit: Admit) -> bool:
    """Whether a task that was just admitted may go straight to ready/: nothing before it, every gate open."""
    if admit.task.conditional or desk.backlog.best(admit.lane) is not None:
        return False
    ready = desk.view.ready.get(admit.lane, {})
    if len(ready) >= desk.store.settings.ready.window:
        return False
    return judge_type(admit.task.kind, type_facts(desk, [admit.task.kind])[admit.task.kind]) == PASS
