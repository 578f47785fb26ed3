"""Laws about servers that forget, with their power, what they had answered for; broken one at a time."""

from __future__ import annotations

from spoold.master import batches, doors
from spoold.master.batches import Batches
from spoold.master.desk import Desk
from spoold.master.leadership import Leadership
from spoold.store.store import Store
from spoold.worker.claims import Claims
from tests.sim.mutation import Mutations, Swap

forgetful = Mutations(world="forgetful")


@forgetful.add("nothing is remembered", "A worker never gives back a claim that it has committed before.")
def spent_claims_left() -> list[Swap]:
    return [(Claims, "give_back", lambda *_: None)]


@forgetful.add("nothing is remembered", "A leader removes a batch as soon as its last line was published.")
def batch_removed_at_once() -> list[Swap]:
    return [(Batches, "_kept", lambda *_: True)]


@forgetful.add("nothing is remembered", "A batch that lost lines while it was read is not begun again.")
def batch_not_begun_again() -> list[Swap]:
    kept = Batches._kept

    def content(self: Batches, desk: Desk, under_way: batches._Open) -> bool:
        under_way.vanished = desk.vanished
        return kept(self, desk, under_way)

    return [(Batches, "_kept", content)]


@forgetful.add("nothing is remembered", "A leader never looks behind its own door again.")
def own_door_not_looked_behind() -> list[Swap]:
    look = doors.look_behind

    def once(desk: Desk) -> None:
        if desk.vanished:
            desk.door_in_doubt = False
        else:
            look(desk)

    return [(doors, "look_behind", once)]


@forgetful.add("nothing is remembered", "A submitter does not look whether what it published is still there.")
def submission_not_settled() -> list[Swap]:
    return [(Store, "settle", lambda *_: None)]


@forgetful.add("leadership", "A leader begins before a power cut can no longer undo that its epoch is its own.")
def epoch_not_kept() -> list[Swap]:
    return [(Leadership, "_kept", lambda *_: True)]
