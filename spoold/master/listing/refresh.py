"""Takes what has changed since the last listings into the desk, each directory as often as its news matter.

A leader knows its own moves and does not poll waiting/. Changes there by a former leader, a late reply or a person
show only in a listing of all of it: unknown tokens are taken in, tokens that are not there count as missing.

Law: listings alone say where a task is; nothing is forgotten of a look that failed halfway. A late look may delay a
decision and never makes one wrong. The leader looks first at what people or tasks wait for. A list that only grows is
read more rarely the longer it is. A task is believed to be gone when several listings in a row show it nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from spoold.master.listing.task_metadata import learn
from spoold.master.state.leader_state import Desk
from spoold.master.state.pool_health import counts_for_alerts
from spoold.master.state.rejecting import reject_twin
from spoold.master.state.tree_view import EVERYTHING, Place, Wanted, still_archived, waiting_place
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    TaskName,
    age_in,
    is_plain,
    is_skipped,
    is_task,
    key,
    key_in,
    order_micros,
    parse_moving,
    parse_returned,
    parse_task,
)
from spoold.protocol.request import Verb
from spoold.rules.scheduling.waiting_task import Entry
from spoold.store.existence import names_in, stands
from spoold.store.lanes_and_archive import list_lanes


def follow(desk: Desk) -> None:
    """List the polled directories and take in the changes. Errors: OSError, and then nothing of it is forgotten."""
    wanted = wanted_now(desk)
    changes = desk.view.refresh(desk.store.fs, wanted)
    desk.step.looked(wanted, changed=changes.any)
    desk.undid(changes.undone)
    for task_key in changes.came:
        with desk.faults.handling("move of the task", task_key, task_key):
            _moved(desk, task_key)
    tally(desk, changes.came)
    for task_key in changes.ended:
        desk.ended(task_key)
    for task_key in changes.revived:
        with desk.faults.handling("return of the task", task_key, task_key):
            desk.view.members.doubt(task_key)
            desk.backlog.parent_changed(task_key, desk.step.now)
    desk.missing.miss(*changes.missing)
    learn(desk, changes.came)


def _moved(desk: Desk, task_key: str) -> None:
    lane, asked = desk.learned.lanes.get(task_key), desk.learned.asked_by(task_key)
    desk.ends.see(desk.view.where.get(task_key), lane, asked)
    desk.backlog.remove(task_key)
    desk.missing.found(task_key)
    place = desk.view.where.get(task_key)
    if place is not None and place.state not in (State.COMPLETED, State.FAILED):
        desk.view.members.came(task_key, place.name)


# How attempts ended, as the listings show it: the figures behind the alert of too many failures.


def tally(desk: Desk, came: Iterable[str]) -> None:
    """Note the ends among the tasks that came to a new place."""
    cancelled: set[str] | None = None
    for task_key in came:
        place = desk.view.where.get(task_key)
        if place is None or not counts_for_alerts(desk.learned.lanes.get(task_key), desk.store.settings.alerts):
            continue
        if place.state is State.FAILED and cancelled is None:
            cancelled = {key(r.target) for r in desk.view.requests if r.verb is Verb.CANCEL}
        with desk.faults.handling("end to count of the task", task_key, task_key):
            _count(desk, task_key, place, cancelled or set())


def _count(desk: Desk, task_key: str, place: Place, cancelled: set[str]) -> None:
    outcomes, now = desk.health.outcomes, desk.step.now.monotonic
    if place.state in (State.COMPLETED, State.FAILED):
        failed: bool | None = place.state is State.FAILED
        if failed:
            failed = None if task_key in cancelled or is_skipped(place.name) else True
        outcomes.ended(now, task_key, failed=failed)
    elif place.state is State.RETURNED:
        if (returned := parse_returned(place.name)) is not None:
            outcomes.returned(now, task_key, returned[0].failures + returned[0].crashes)
    elif (name := parse_moving(place.name)) is not None:
        outcomes.charged(task_key, name.failures + name.crashes)


# How often a leader lists each directory, and how long it rests.


# How often (s) each is listed where looks cost round trips. UNDER_WAY, QUIET: everything, in heartbeat intervals.
UNDER_WAY, QUIET = 0.5, 3.0
PENDING_S, PENDING_IDLE_S = 0.4, 0.9  # with nothing ready: at every step, and this often where looks are dear
READY_S = 0.5
ENDED_S, ENDED_EACH_S = 1.0, 1e-4
# Where looks are free, two of them still grow: the ended tasks with the recent work, and the drops with those not yet
# admitted. So they are not listed at every step, but beyond FEW entries only this often (s) for each entry: ends that
# others wait for take a tenth of the time at most, other ends less, and a thousandth in a quiet spool.
FEW = 256
ENDED_AWAITED_S, ENDED_LOCAL_S, ENDED_QUIET_S = 2e-6, 5e-6, 2e-4
PENDING_LOCAL_S = 1e-5
# How long (s) a leader rests while tasks are under way, and at most while many stand ready.
REST_S, REST_MOST_S = 0.001, 0.02
REQUESTS_S, REQUESTS_QUIET_S = 1.0, 2.0


def wanted_now(desk: Desk) -> Wanted:
    """Return what to list now: all where looks are free, else what may have changed, and all at times."""
    polling, view, interval_s = desk.polling, desk.view, desk.store.settings.heartbeat.interval_s
    under_way = _under_way(desk)
    if under_way or view.pending or desk.step.busy:
        polling.active()
    every_s = interval_s * (UNDER_WAY * polling.dear if under_way else QUIET)
    if desk.step.unsure or desk.missing:
        polling.hasten("everything")
        polling.hasten("ended")
    if polling.take("everything", every_s):
        if polling.rationed:
            return EVERYTHING
        pending_s = PENDING_LOCAL_S * max(0, len(view.pending) - FEW)
        return Wanted(
            pending=polling.take("pending", 0.0, pending_s), ended=polling.take("ended", 0.0, _ended_s(desk))
        )
    # An end that others wait for is looked for at once. The longer the list of ended tasks, the rarer a look.
    each_s = ENDED_EACH_S * (len(view.completed) + len(view.failed))
    ended_s = max(0.0 if desk.backlog.graph else ENDED_S * polling.dear, each_s)
    # With tasks ready, one more would only queue behind them.
    pending_s = (
        PENDING_S * polling.dear if any(view.ready.values()) else PENDING_IDLE_S * (polling.dear - 1) * polling.slow
    )
    return Wanted(
        pending=polling.take("pending", pending_s),
        ready=any(view.ready.values()) and polling.take("ready", 0.0 if _thirsty(desk) else READY_S * polling.dear),
        ended=under_way and polling.take("ended", ended_s),
        requests=polling.take(
            "requests", REQUESTS_S * polling.dear if under_way else REQUESTS_QUIET_S * polling.slow
        ),
        beats=polling.take("beats", interval_s / 2 if under_way else interval_s),
        everything=False,
    )


def _under_way(desk: Desk) -> bool:
    """Whether anything may end soon, or has ended unseen."""
    view = desk.view
    return bool(view.on_the_way) or any(view.ready.values()) or any(view.claimed.values())


def _ended_s(desk: Desk) -> float:
    """How often (s) ended tasks are listed where looks are free."""
    each_s = ENDED_QUIET_S
    if _under_way(desk):
        each_s = ENDED_AWAITED_S if desk.backlog.graph else ENDED_LOCAL_S
    return each_s * max(0, len(desk.view.completed) + len(desk.view.failed) - FEW)


def ends_due(desk: Desk) -> float | None:
    """When (monotonic, s) to look for tokens that have left their place; None while none has."""
    wanted = desk.view.on_the_way and not desk.polling.rationed
    return desk.polling.next_due("ended", _ended_s(desk)) if wanted else None


def _thirsty(desk: Desk) -> bool:
    """Whether a lane may soon run dry though more tasks wait for it."""
    enough = desk.store.settings.ready.window // 2
    return any(len(tasks) <= enough and desk.backlog.best(lane) for lane, tasks in desk.view.ready.items())


def rest_s(desk: Desk, taken: int, since_s: float) -> float:
    """How long (s) a leader may rest without making anyone wait: more work then shares the cost of a look.

    taken: how many tasks it put into ready/ to replace those that workers took since the last step, since_s ago. At
    that pace, workers take a quarter of a full window meanwhile.
    """
    window = desk.store.settings.ready.window
    if sum(map(len, desk.view.ready.values())) <= window // 2 or _thirsty(desk):
        return REST_S if _under_way(desk) else 0.0
    return max(REST_S, min(REST_MOST_S, since_s * window / (4 * taken) if taken else REST_MOST_S))


# Lists waiting/ anew: unknown tokens there are taken in, tokens that are not there count as missing.


# waiting/ is listed anew this often (s), but never for more than this share of the leader's time.
RELIST_EVERY_S, RELIST_SHARE = 30.0, 0.01
VANISHED_AFTER = 3
# After so many names of a long listing, the leader renews its token and its beat.
BREATHE_EVERY = 10_000

# The names in waiting/, by lane; foreign ones among them.
Waiting = dict[str, set[str]]


def relist_in_s(spent_s: float, before_s: float) -> float:
    """How long to wait (s) from the beginning of a listing to the next one. spent_s: how long it took; before_s: how
    long the one before it took. The shorter counts: a share that fell silent says nothing about the next listing.
    """
    return max(RELIST_EVERY_S, min(spent_s, before_s) / RELIST_SHARE)


def list_waiting(desk: Desk) -> Waiting:
    """Return every name in waiting/. Errors: OSError."""
    names: Waiting = {}
    others: list[str] = []
    lanes = list_lanes(desk.store.fs, layout.WAITING, others)
    desk.view.misnamed.see_branches(State.WAITING, others)
    for lane in lanes:
        desk.breathe()
        known = (entry.file for _, entry in desk.backlog.items() if entry.lane == lane)
        names[lane] = set(names_in(desk.store.fs, layout.join(layout.WAITING, lane), desk.view.blocked, known))
    return names


def adopt(desk: Desk, listed: Waiting) -> list[tuple[str, Entry]]:
    """Take tokens of waiting/ into the backlog that are not in it yet, oldest first. Errors: OSError.

    A token under the name that the backlog has is only struck from the listing; of a million tasks these are nearly
    all. Returns the entries of the backlog that the listing lacks.
    """
    unseen = []
    for number, (task_key, entry) in enumerate(desk.backlog.items(), 1):
        if not number % BREATHE_EVERY:
            desk.breathe()
        try:
            listed[entry.lane].remove(entry.file)
        except KeyError:
            unseen.append((task_key, entry))
    tokens = [(file, lane) for lane, names in listed.items() for file in names if is_task(file)]
    others = [(lane, file) for lane, names in listed.items() for file in names if not is_task(file)]
    desk.view.misnamed.see_waiting(layout.WAITING, others)
    tokens.sort(key=lambda token: age_in(token[0]))
    any(desk.orders.saw(order_micros(age_in(file))) for file, _ in reversed(tokens))  # the latest that counts
    moving = _on_the_move(desk)
    for number, (file, lane) in enumerate(tokens, 1):
        _adopt_one(desk, file, lane, moving)
        if not number % BREATHE_EVERY:
            desk.breathe()
    return unseen


def relist(desk: Desk) -> None:
    """List waiting/ anew: adopt late moves of another leader, and doubt tasks that are not there. Errors: OSError."""
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
    desk.contained("listed task", place, name, partial(_adopt_at, desk, place, name, moving))


def _adopt_at(desk: Desk, place: Place, name: TaskName, moving: dict[str, TaskName]) -> None:
    task_key, file, lane, task = key(name.id), place.name, place.directory.partition("/")[2], None
    other = desk.view.place(task_key)
    if name.conditional:
        task = desk.task_at(place, name)
        if task is None:
            return
    desk.undid(
        task_key in desk.missing.keys and other is not None and (other.state, other.name) == (State.READY, file)
    )
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
    if not still_archived(desk.store.fs, task_id, desk.view.blocked):
        desk.view.archived.discard(key(task_id))
        return False
    return True


def _on_the_move(desk: Desk) -> dict[str, TaskName]:
    """Return the tokens that are ready, claimed or returned, by key."""
    return {key(name.id): name for _, _, names in desk.view.moving() for name in names.values()}


def _twin(desk: Desk, place: Place, name: TaskName, other: Place, moving: TaskName | None) -> bool:
    """Whether the id belongs to another token, which only a copy made by hand can still bring about.

    The older order stays. A token that has ended stays too, unless it was retried meanwhile, which shows in a later
    attempt; but only while it is still there, for a server that loses its power may undo that end.
    """
    if other == place:
        return False
    if moving is not None:
        return moving.order != name.order
    entry = desk.backlog.get(key(name.id))
    if entry is not None:
        return entry.name.order < name.order
    ended = desk.view.completed.get(other.name) or desk.view.failed.get(other.name)
    return ended is not None and ended.attempt >= name.attempt and stands(desk.store.fs, other.path)


def settle_missing(desk: Desk) -> None:
    """Find tokens whose place is in doubt, or believe in the end that a person removed them. Errors: OSError."""
    if not desk.missing:
        return
    adopt(desk, list_waiting(desk))
    seen = desk.view.seen(desk.missing.keys)
    for task_key in sorted(desk.missing.keys):
        if task_key in seen and task_key not in desk.backlog:
            # Its server undid the move away from there before a listing had shown that it had left.
            desk.view.stand(task_key, seen[task_key])
            desk.undid(1)
        if task_key in desk.backlog or task_key in seen:
            desk.missing.found(task_key)
            continue
        if desk.missing.nowhere(task_key) >= VANISHED_AFTER:
            place = desk.view.unplace(task_key)
            desk.missing.believe(task_key, place.path if place else "on its way", desk.step.now.monotonic)
            desk.ended(task_key)
            desk.door.doubt()  # a server that lost its power may have forgotten that it had left the door
            desk.journal.note("VANISHED", task_key, where=place.path if place else None)
