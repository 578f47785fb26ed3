"""Learns of a token that another node moved: its lane, which limits count by, its deadline, budgets and locks.

Law: reads, and moves nothing. A file that cannot be read just now (an SMB server says EACCES while another client has
it open) is read again until it can be. Until then the type of the claim is unknown: it counts for every limit, and it
may lock everything. So does a claim of which only its worker knows as which type it runs, until that says so: the
lanes of ready/ say which types come into question.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import Place
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lanes import Lane, kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key
from spoold.protocol.task import Task
from spoold.rules.gates.budget_usage import NOTHING, asked_by
from spoold.rules.gates.registry import conditions_of
from spoold.rules.scheduling.fallback_types import stands_in
from spoold.store import heartbeats

# How often (s) a file that could not be read is read again.
AGAIN_S = 1.0


def learn(desk: Desk, came: Collection[str]) -> None:
    """Look up the tasks that came to a new place, and now and then those that could not be looked up before.

    Errors: OSError, and then the rest is looked up later.
    """
    for task_key in came:
        desk.learned.look_up(task_key, desk.step.now.monotonic)
    again = bool(desk.learned.unlearned) and desk.polling.take("unlearned", AGAIN_S, AGAIN_S)
    for task_key in desk.some(list(desk.learned.unlearned) if again else came, "unlearned" if again else ""):
        place, learned = desk.view.where.get(task_key), False
        with desk.faults.handling("demand of the task", task_key, task_key):
            learned = place is None or _learned(desk, task_key, place)
        if learned:
            late = desk.learned.looked_up(task_key, desk.step.now.monotonic) < desk.step.now.monotonic
            if late:
                desk.step.change()  # tasks that waited for this may go on


def unread(desk: Desk, *, conditions: bool = False) -> list[str]:
    """Return the claims, for people, whose type is unknown though the leader tried to read them for an interval.

    conditions: also those whose type is known, and what they say of budgets is not.
    """
    since = desk.step.now.monotonic - desk.store.settings.heartbeat.interval_s
    late = [k for k, at in desk.learned.unlearned.items() if at <= since and k not in desk.learned.unsure]
    keys = [k for k in late if conditions or k not in desk.learned.lanes]
    places = [desk.view.where.get(task_key) for task_key in sorted(keys)]
    return [place.path for place in places if place is not None and place.state is State.CLAIMED]


def _learned(desk: Desk, task_key: str, place: Place) -> bool:
    """Whether nothing more is to be learned of this token where it is. Errors: OSError."""
    branch = place.directory.partition("/")[2]
    if place.state is State.READY:
        desk.learned.learn_lane(task_key, branch)
        name = desk.view.ready.get(branch, {}).get(place.name)
    elif place.state is State.CLAIMED:
        name = desk.view.claimed.get(branch, {}).get(place.name)
    else:
        return True
    unknown_lane = task_key not in desk.learned.lanes
    asked, demands = desk.learned.asked, desk.learned.demands
    unread = name is not None and name.conditional and (task_key not in asked or task_key not in demands)
    if name is None or not (unknown_lane or unread):
        return True
    try:
        with desk.faults.reading("file", place.path, name.id, name.attempt):
            task = desk.read_task(place.path)
    except (BadFile, PermissionError) as error:
        if unknown_lane:
            _ask_worker(desk, branch, name)
        if isinstance(error, BadFile):
            desk.learned.learn_asked(task_key, NOTHING)
        elif name.conditional and desk.store.settings.budgets:
            return False
        if isinstance(error, BadFile) and place.state is State.READY:
            desk.learned.learn_no_demand(task_key)  # it cannot be run
            return True
        return task_key in desk.learned.lanes and not (name.conditional and task_key not in demands)
    if task is None:
        return False  # it moves just now: the next listing shows where it is
    sure = not unknown_lane or _learn_lane(desk, branch, name, task)
    conditions = conditions_of(task)
    desk.learned.learn_demand(task_key, conditions)
    if name.conditional:
        desk.learned.learn_asked(task_key, asked_by(task) or NOTHING)
    if conditions.deadline is not None:
        desk.learned.learn_deadline(task_key, conditions.deadline)
    return sure


def _learn_lane(desk: Desk, worker: str, name: TaskName, task: Task) -> bool:
    """Learn the lane from which a claim was taken; whether it is known now."""
    last = desk.view.beats.get(worker) if _others_of(desk, task) else None
    lanes = lanes_of(desk, name, task, heartbeats.read(desk.store.fs, last) if last is not None else None)
    if len(lanes) > 1:
        desk.learned.doubt_type(key(name.id))
        return False
    desk.learned.learn_lane(key(name.id), lanes[0])
    return True


def lanes_of(desk: Desk, name: TaskName, task: Task, beat: Heartbeat | None) -> list[str]:
    """Return the lanes from which a claim may have been taken that nobody here saw in ready/, that of its own type
    first; only one where its worker's heartbeat says as which type it runs.
    """
    kinds = [task.kind, *_others_of(desk, task)]
    runs = beat.running if beat is not None and len(kinds) > 1 else ()
    said = {run.type for run in runs if (key(run.id), run.attempt) == (key(name.id), name.attempt)}
    return [task.lane.under(kind).encode() for kind in kinds if said.isdisjoint(kinds) or kind in said]


def _others_of(desk: Desk, task: Task) -> list[str]:
    """Return the other types as which a task may run: their lanes stay as long as a claim may be of one."""
    return sorted({kind_in(lane) for lane in desk.view.ready if stands_in(lane, task.kind)})


def _ask_worker(desk: Desk, worker: str, name: TaskName) -> None:
    """Look in its worker's heartbeat for the type of a claim that this leader cannot read."""
    last = desk.view.beats.get(worker)
    beat = heartbeats.read(desk.store.fs, last) if last is not None else None
    for run in beat.running if beat is not None else ():
        if key(run.id) == key(name.id) and run.type:
            try:
                desk.learned.learn_lane(key(name.id), Lane(run.type).encode())
            except BadName:
                return
