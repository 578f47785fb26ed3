"""Laws about files that strangers write into the drop box slowly, or again and again, broken one at a time."""

from __future__ import annotations

from spoold.master.intake import batch_admission, deferred_drops, drops
from spoold.master.intake.drops import Originals
from spoold.master.intake.requeue_changed import Rejudging
from spoold.master.state.leader_state import Desk
from spoold.protocol.admission_names import BatchName
from spoold.protocol.names import WHOLE
from spoold.store import existence
from tests.sim.mutation import Mutations, Swap

slow = Mutations(world="slow")
reused = Mutations(world="reused")


@slow.add("durable", "A leader admits what was copied into the drop box without making it durable.")
def drop_not_made_durable() -> list[Swap]:
    return [(deferred_drops, "must_be_durable", lambda *_: False)]


def _removed_at_once(desk: Desk, name: BatchName) -> bool:
    existence.remove(desk.store.fs, desk.door.at(name.encode()))
    return True


@slow.add("no line is lost", "A batch file is removed after its last line, and nobody looks what its writer adds.")
def no_second_look_after_the_move() -> list[Swap]:
    return [(batch_admission, "keep_watched", _removed_at_once)]


@slow.add("no line is lost", "A batch that is called whole is never looked at again, whatever its writer adds.")
def promise_believed() -> list[Swap]:
    def promised(drop: str) -> bool:
        return drop.endswith(WHOLE)

    return [(batch_admission, "is_our_batch", promised), (drops, "is_our_batch", promised)]


@slow.add("no line is lost", "What was rejected unfinished is never looked at again.")
def rejection_for_ever() -> list[Swap]:
    return [(Rejudging, "step", lambda *_: None)]


@reused.add("own file", "A single drop of a stranger becomes the task by rename.")
def the_drop_becomes_the_task() -> list[Swap]:
    return [(drops, "wanted", lambda *_: False)]


@reused.add("no drop is lost", "The original of a task is removed, and nobody looks what it says by then.")
def no_second_look_at_the_original() -> list[Swap]:
    return [(Originals, "_became", lambda *_: True)]


@reused.add("no drop is lost", "A rejected drop that was written again stays beside the reason of the last.")
def rejected_file_written_again() -> list[Swap]:
    return [(Rejudging, "_look", lambda *_: True)]


@reused.add("no drop is lost", "Of a batch that is watched only the size counts, and not what it says.")
def batch_compared_by_size() -> list[Swap]:
    return [(batch_admission, "in_name", lambda _: b"")]
