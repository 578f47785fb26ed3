"""Laws about servers that forget, with their power, what they had answered for; broken one at a time."""

from __future__ import annotations

from spoold.master.intake import admission_directories, batch_admission, deferred_drops
from spoold.master.intake.batch_admission import Batches
from spoold.master.state.leader_state import Desk
from spoold.master.state.leadership import Leadership
from spoold.master.state.tree_view import Place, View
from spoold.protocol.lifecycle import State
from spoold.store import mover
from spoold.store.mover import Moved
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem
from spoold.worker.attempts.claims import Claims
from tests.sim.mutation import Mutations, Swap

forgetful = Mutations(world="forgetful")
doors_forgotten = Mutations(world="forgetful-doors")
ends_forgotten = Mutations(world="forgetful-ends")
slow_forgetful = Mutations(world="slow-forgetful")


@forgetful.add("nothing is remembered", "A worker never gives back a claim that it has committed before.")
def spent_claims_left() -> list[Swap]:
    return [(Claims, "give_back", lambda *_: None)]


@doors_forgotten.add("nothing is remembered", "A leader removes a batch as soon as its last line was published.")
def batch_removed_at_once() -> list[Swap]:
    return [(Batches, "_kept", lambda *_: True)]


@doors_forgotten.add("nothing is remembered", "A batch that lost lines while it was read is not begun again.")
def batch_not_begun_again() -> list[Swap]:
    kept = Batches._kept

    def content(self: Batches, desk: Desk, under_way: batch_admission._Open) -> bool:
        under_way.vanished = desk.missing.vanished
        return kept(self, desk, under_way)

    return [(Batches, "_kept", content)]


@doors_forgotten.add("nothing is remembered", "A leader never looks behind its own door again.")
def own_door_not_looked_behind() -> list[Swap]:
    look = admission_directories.look_behind

    def once(desk: Desk) -> None:
        if desk.missing.vanished:
            desk.door.in_doubt = False
        else:
            look(desk)

    return [(admission_directories, "look_behind", once)]


@forgetful.add("nothing is remembered", "A submitter does not look whether what it published is still there.")
def submission_not_settled() -> list[Swap]:
    return [(Store, "settle", lambda *_: None)]


@forgetful.add("leadership", "A leader begins before a power cut can no longer undo that its epoch is its own.")
def epoch_not_kept() -> list[Swap]:
    return [(Leadership, "_kept", lambda *_: True)]


@forgetful.add("told", "A rename onto a name that only the client believes in counts as made, as POSIX has it.")
def belief_taken_for_a_move() -> list[Swap]:
    judge = mover._judge

    def content(fs: FileSystem, src: str, dst: str, error: OSError) -> Moved:
        return mover.DONE if isinstance(error, FileExistsError) else judge(fs, src, dst, error)

    return [(mover, "_judge", content)]


@ends_forgotten.add("nothing is remembered", "What has completed is completed for ever, though its commit is gone.")
def success_outlives_its_commit() -> list[Swap]:
    def succeeded(_: View, place: Place) -> bool:
        return place.state is State.COMPLETED

    return [(View, "_succeeded", succeeded), (View, "_unseat", lambda *_: None)]


@slow_forgetful.add("durable", "A leader admits what it has read, whatever a power cut has left of it since.")
def judged_from_memory() -> list[Swap]:
    return [(deferred_drops, "_is_still", lambda *_: True)]
