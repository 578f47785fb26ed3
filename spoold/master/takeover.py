"""Reads everything, once, before a new leader plans. Afterwards the leader follows differences.

Law: the order matters. First the doors of all leaders before are shut. Then the polled directories are listed in the
order in which tokens flow, then waiting/, then the polled ones once more, so that a moving token is seen twice rather
than not at all.
"""

from __future__ import annotations

from spoold.master import doors
from spoold.master.desk import Desk
from spoold.master.following import follow
from spoold.master.placing import gather_facts
from spoold.master.relisting import BREATHE_EVERY, adopt, list_waiting
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import key
from spoold.store.archive import list_archived


def take_over(desk: Desk) -> None:
    """Learn the whole tree. Errors: OSError; then the epoch has not begun and the next step tries again."""
    doors.open_door(desk)
    follow(desk)
    for number, (_, name, kind) in enumerate(list_archived(desk.store.fs, blocked=desk.view.blocked), 1):
        desk.view.archived.add(key(name.id), shown_end(State(kind), skipped=name.skipped))
        if not number % BREATHE_EVERY:
            desk.breathe()
    # A leader before may be in the middle of its last step, and take a token back to waiting/ unseen, but only once;
    # so the polled directories are listed before waiting/ and after it.
    gather_facts(desk)
    tokens = list_waiting(desk)
    desk.step.doubt()
    follow(desk)
    adopt(desk, tokens)
    desk.view.members.begin(desk.epoch, desk.orders.last)
