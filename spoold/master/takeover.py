"""What a new leader reads before it plans: everything, once. Afterwards it follows differences.

Order matters: first the doors of all leaders before are shut; then what is polled is listed in the order in which
tokens flow, then waiting/, then what is polled once more, so that a token on the move is seen twice rather than not
at all.
"""

from __future__ import annotations

import contextlib

from spoold.master import doors
from spoold.master.desk import Desk
from spoold.master.rejecting import reject_twin
from spoold.master.view import EVERYTHING, Place, Wanted, waiting_place
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.glance import age_in, is_plain, is_task, key_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.order import order_micros
from spoold.rules.backlog import Entry
from spoold.rules.gates import conditions_of
from spoold.store.absence import names_in
from spoold.store.archive import find_archived, list_archived
from spoold.store.lanes import list_lanes

VANISHED_AFTER = 3
# How often (s) what is listed where looks cost round trips. UNDER_WAY, QUIET: everything, in heartbeat intervals.
UNDER_WAY, QUIET = 0.5, 3.0
PENDING_S = 0.4
READY_S = 0.5
ENDED_S, ENDED_EACH_S = 1.0, 1e-4
# Where looks are free, two of them still grow: what has ended with what was done lately, and the drops with what is
# not admitted yet. So they are not listed at every step, but beyond a few only so often (s) for each: ends that are
# waited for take a tenth of the time at most, others less, and a thousandth in a quiet spool.
FEW = 256
ENDED_AWAITED_S, ENDED_LOCAL_S, ENDED_QUIET_S = 2e-6, 5e-6, 2e-4
PENDING_LOCAL_S = 1e-5
# How long (s) a leader rests while tasks are under way, and at most while many stand ready.
REST_S, REST_MOST_S = 0.001, 0.02
REQUESTS_S, REQUESTS_QUIET_S = 1.0, 2.0
# After so many names of a long listing, the leader sees to its token and its beat.
BREATHE_EVERY = 10_000

# The names in waiting/, by lane; foreign ones among them.
Waiting = dict[str, set[str]]


def take_over(desk: Desk) -> None:
    """Learn the whole tree. Errors: OSError; then the epoch has not begun and the next step tries again."""
    doors.open_door(desk)
    follow(desk)
    for number, (_, name, kind) in enumerate(list_archived(desk.store.fs), 1):
        desk.view.archived.add(key(name.id), State(kind))
        if not number % BREATHE_EVERY:
            desk.breathe()
    # A leader before may be in the middle of its last step, and take a token back to waiting/ unseen, but only once;
    # so what is polled is listed before waiting/ and after it.
    tokens = list_waiting(desk)
    desk.unsure = True
    follow(desk)
    adopt(desk, tokens)


def list_waiting(desk: Desk) -> Waiting:
    """Every name in waiting/. Errors: OSError."""
    names = {}
    for lane in list_lanes(desk.store.fs, layout.WAITING):
        desk.breathe()
        names[lane] = set(names_in(desk.store.fs, layout.join(layout.WAITING, lane)))
    return names


def adopt(desk: Desk, listed: Waiting) -> list[tuple[str, Entry]]:
    """Take tokens of waiting/ into the backlog that are not in it yet, oldest first. Errors: OSError.

    What stands there under the very same name, and of a million tasks that is nearly all, is only struck from the
    listing. Returns what was in the backlog and not in the listing.
    """
    unseen = []
    for task_key, entry in desk.backlog.items():
        try:
            listed[entry.lane].remove(entry.file)
        except KeyError:
            unseen.append((task_key, entry))
    tokens = [(file, lane) for lane, names in listed.items() for file in names if is_task(file)]
    tokens.sort(key=lambda token: age_in(token[0]))
    if tokens:
        desk.last_micros = max(desk.last_micros, order_micros(age_in(tokens[-1][0])))
    moving = _on_the_move(desk)
    for number, (file, lane) in enumerate(tokens, 1):
        _adopt_one(desk, file, lane, moving)
        if not number % BREATHE_EVERY:
            desk.breathe()
    return unseen


def relist(desk: Desk) -> None:
    """List waiting/ anew: adopt what another leader moved late, and miss what is not there. Errors: OSError."""
    for task_key, entry in adopt(desk, list_waiting(desk)):
        if desk.backlog.get(task_key) is entry:
            desk.doubt(task_key)


def _adopt_one(desk: Desk, file: str, lane: str, moving: dict[str, TaskName]) -> None:
    task_key = key_in(file)
    other = desk.view.place(task_key)
    if other is None and task_key not in desk.view.archived and is_plain(file):
        desk.enlist(file, lane, None, 0)
        return
    place, name = waiting_place(lane, file), parse_task(file)
    assert name is not None
    task = None
    if name.conditional:
        task = desk.task_at(place, name)
        if task is None:
            return
    moved = moving.get(task_key)
    if moved is not None and moved.order == name.order and moved.attempt >= name.attempt:
        return  # it has moved on since waiting/ was listed
    if _archived(desk, name.id) or (other is not None and _twin(desk, place, name, other, moved)):
        reject_twin(desk, place.path, name.id)
        return
    desk.enlist(file, lane, task, name.delay_ms)


def _archived(desk: Desk, task_id: str) -> bool:
    """Whether the id belongs to an archived task; one that another leader took out again no longer counts."""
    if key(task_id) not in desk.view.archived:
        return False
    if find_archived(desk.store.fs, task_id) is None:
        desk.view.archived.discard(key(task_id))
        return False
    return True


def _on_the_move(desk: Desk) -> dict[str, TaskName]:
    """The tokens that are ready, claimed or returned, by key."""
    branches = (*desk.view.ready.values(), *desk.view.claimed.values(), desk.view.returned)
    return {key(name.id): name for branch in branches for name in branch.values()}


def _twin(desk: Desk, place: Place, name: TaskName, other: Place, moving: TaskName | None) -> bool:
    """Whether the id belongs to another token, which only a copy made by hand can still bring about.

    The older order stays. A token that has ended stays too, unless it was tried again meanwhile, which shows in a
    later attempt.
    """
    if other == place:
        return False
    if moving is not None:
        return moving.order != name.order
    entry = desk.backlog.get(key(name.id))
    if entry is not None:
        return entry.name.order < name.order
    ended = desk.view.completed.get(other.name) or desk.view.failed.get(other.name)
    return ended is not None and ended.attempt >= name.attempt


def follow(desk: Desk) -> None:
    """List what is polled and take in what changed. Errors: OSError, and then nothing of it is forgotten."""
    wanted = _wanted(desk)
    changes = desk.view.refresh(desk.store.fs, wanted)
    desk.listed = wanted
    desk.unsure = desk.unsure and not wanted.everything
    desk.busy = desk.busy or changes.any
    for task_key in changes.came:
        desk.backlog.remove(task_key)
        desk.missing.discard(task_key)
    for task_key in changes.ended:
        desk.ended(task_key)
    desk.missing.update(changes.missing)
    desk.unlearned += changes.came
    while desk.unlearned:
        task_key = desk.unlearned[-1]
        place = desk.view.where.get(task_key)
        if place is not None:
            _learn(desk, task_key, place)
        desk.unlearned.pop()


def _wanted(desk: Desk) -> Wanted:
    """What is listed now. Where looks are free, everything; else what may have changed, and everything at times."""
    looks, view, interval_s = desk.looks, desk.view, desk.store.settings.heartbeat.interval_s
    under_way = _under_way(desk)
    every_s = interval_s * (UNDER_WAY if under_way else QUIET)
    if desk.unsure or desk.missing:
        looks.hasten("everything")
        looks.hasten("ended")
    if looks.take("everything", every_s):
        if looks.rationed:
            return EVERYTHING
        pending_s = PENDING_LOCAL_S * max(0, len(view.pending) - FEW)
        return Wanted(pending=looks.take("pending", 0.0, pending_s), ended=looks.take("ended", 0.0, _ended_s(desk)))
    # An end that others wait for is looked for at once. The longer the list of what has ended, the rarer it is read.
    ended_s = max(0.0 if desk.backlog.awaits else ENDED_S, ENDED_EACH_S * (len(view.completed) + len(view.failed)))
    # With tasks standing ready, one more would only queue behind them.
    pending_s = PENDING_S if any(view.ready.values()) else 0.0
    return Wanted(
        pending=looks.take("pending", pending_s),
        ready=any(view.ready.values()) and looks.take("ready", 0.0 if _thirsty(desk) else READY_S),
        ended=under_way and looks.take("ended", ended_s),
        requests=looks.take("requests", REQUESTS_S if under_way else REQUESTS_QUIET_S),
        beats=looks.take("beats", interval_s / 2 if under_way else interval_s),
        everything=False,
    )


def _under_way(desk: Desk) -> bool:
    """Whether anything may end soon, or has, unseen."""
    view = desk.view
    return view.on_the_way or any(view.ready.values()) or any(view.claimed.values())


def _ended_s(desk: Desk) -> float:
    """How often (s) what has ended is listed where looks are free."""
    each_s = ENDED_QUIET_S
    if _under_way(desk):
        each_s = ENDED_AWAITED_S if desk.backlog.awaits else ENDED_LOCAL_S
    return each_s * max(0, len(desk.view.completed) + len(desk.view.failed) - FEW)


def ends_due(desk: Desk) -> float | None:
    """When (monotonic, s) to look for what has left its place; None while nothing has."""
    if desk.looks.rationed or not desk.view.on_the_way:
        return None
    return desk.looks.next_due("ended", _ended_s(desk))


def _thirsty(desk: Desk) -> bool:
    """Whether a lane may soon run dry though more waits for it."""
    enough = desk.store.settings.ready.window // 2
    return any(len(tasks) <= enough and desk.backlog.best(lane) for lane, tasks in desk.view.ready.items())


def rest_s(desk: Desk, taken: int, since_s: float) -> float:
    """How long (s) a leader may look at nothing and keep nobody waiting: what a look costs is then shared by more.

    taken: so many were put into ready/ for those that workers took since the last step, since_s ago. At that pace, a
    quarter of a full window is taken meanwhile.
    """
    window = desk.store.settings.ready.window
    if sum(map(len, desk.view.ready.values())) <= window // 2 or _thirsty(desk):
        return REST_S if _under_way(desk) else 0.0
    return max(REST_S, min(REST_MOST_S, since_s * window / (4 * taken) if taken else REST_MOST_S))


def _learn(desk: Desk, task_key: str, place: Place) -> None:
    """The lane and the deadline of a token that somebody else moved."""
    branch = place.directory.partition("/")[2]
    if place.state is State.READY:
        desk.lanes[task_key] = branch
        name = desk.view.ready.get(branch, {}).get(place.name)
    elif place.state is State.CLAIMED:
        name = desk.view.claimed.get(branch, {}).get(place.name)
    else:
        return
    unknown_lane = task_key not in desk.lanes
    if name is None or not (unknown_lane or (name.conditional and task_key not in desk.deadlines)):
        return
    with contextlib.suppress(BadFile, PermissionError):
        task = desk.read_task(place.path)
        if task is not None:
            desk.lanes[task_key] = task.lane.encode()
            moment = conditions_of(task).deadline
            if moment is not None:
                desk.deadlines[task_key] = moment


def settle_missing(desk: Desk, doubts: dict[str, int]) -> None:
    """Find tokens whose place is in doubt, or believe in the end that a person removed them. Errors: OSError.

    doubts: key → how many listings in a row did not show it; kept by the caller from step to step.
    """
    if not desk.missing:
        doubts.clear()
        return
    adopt(desk, list_waiting(desk))
    for task_key in sorted(desk.missing):
        if task_key in desk.backlog:
            desk.missing.discard(task_key)
            doubts.pop(task_key, None)
            continue
        doubts[task_key] = doubts.get(task_key, 0) + 1
        if doubts[task_key] >= VANISHED_AFTER:
            place = desk.view.where.pop(task_key, None)
            desk.missing.discard(task_key)
            doubts.pop(task_key, None)
            desk.ended(task_key)
            desk.vanished += 1
            desk.door_in_doubt = True  # a server that lost its power may have forgotten that it had left there
            desk.journal.note("VANISHED", task_key, where=place.path if place else None)
