"""Lists waiting/ anew: unknown tokens there are taken in, tokens that are not there count as missing.

A leader knows its own moves and does not poll waiting/. Changes there by a former leader, a late reply or a person
show only in such a listing.

Law: a task is believed to be gone when several listings in a row show it nowhere.
"""

from __future__ import annotations

from functools import partial

from spoold.master.archived import still_archived
from spoold.master.desk import Desk
from spoold.master.place import Place, waiting_place
from spoold.master.rejecting import reject_twin
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.name_parts import age_in, is_plain, is_task, key_in
from spoold.protocol.names import TaskName, key, parse_task
from spoold.protocol.order import order_micros
from spoold.rules.scheduling.entry import Entry
from spoold.store.absence import names_in, stands
from spoold.store.lane_moves import list_lanes

# waiting/ is listed anew this often (s), but never for more than this share of the leader's time.
EVERY_S, SHARE = 30.0, 0.01
VANISHED_AFTER = 3
# After so many names of a long listing, the leader renews its token and its beat.
BREATHE_EVERY = 10_000

# The names in waiting/, by lane; foreign ones among them.
Waiting = dict[str, set[str]]


def rest_s(spent_s: float, before_s: float) -> float:
    """How long to wait (s) from the beginning of a listing to the next one. spent_s: how long it took; before_s: how
    long the one before it took. The shorter counts: a share that fell silent says nothing about the next listing.
    """
    return max(EVERY_S, min(spent_s, before_s) / SHARE)


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
