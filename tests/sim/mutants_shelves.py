"""Entries of a batch and steps of a task, with one law broken at a time."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

from spoold.client import context_and_steps
from spoold.client.spool.connection import Numbers
from spoold.master.state.leader_state import Desk
from spoold.master.state.tree_view import View
from spoold.master.tasks.archiving import Clearing
from spoold.protocol.context_entry import EntryName
from spoold.protocol.errors import BadFile
from spoold.protocol.step import Step, StepName
from spoold.rules.scheduling.batch_members import Members
from spoold.store import versioned_files
from spoold.store.store import Store
from spoold.store.versioned_files import STEPS, Shelf
from spoold.system.filesystem import FileSystem
from tests.sim.mutation import Mutations, Swap

shelves = Mutations("shelves")


@shelves.add("a number is given once", "A number that was listed is given again.")
def number_given_again() -> list[Swap]:
    def highest(self: Numbers, directory: str, listed: Iterable[int]) -> int:
        return max(listed, default=1)

    return [(Numbers, "above", highest)]


@shelves.add("who did not know of another is told", "An author does not look again after it has published.")
def nobody_told() -> list[Swap]:
    def none(entries: Iterable[EntryName], mine: EntryName) -> list[EntryName]:
        return []

    return [(context_and_steps, "rivals", none)]


@shelves.add("what is acknowledged survives", "An entry or step is published without waiting for the disk.")
def shelf_not_durable() -> list[Swap]:
    publish = Store.publish

    def carelessly(self: Shelf[StepName, Step], store: Store, owner: str, name: StepName, content: object) -> None:
        def hasty(self: Store, dst: str, data: bytes, *, durable: bool) -> str:
            return publish(self, dst, data, durable=False)

        with patch.object(Store, "publish", hasty):
            kept(self, store, owner, name, content)  # type: ignore[arg-type]

    kept = Shelf.publish
    return [(Shelf, "publish", carelessly)]


@shelves.add("what the tasks of a batch share stays", "What a batch shares is removed though it has open tasks.")
def cleared_under_open_tasks() -> list[Swap]:
    return [
        (Members, "has_open", lambda self, batch: False),
        (Members, "surely_over", lambda self, batch, tokens: True),
    ]


@shelves.add("what the tasks of a batch share stays", "A leader takes the tasks that it does not know for none.")
def strangers_not_asked() -> list[Swap]:
    return [(Members, "surely_over", lambda self, batch, tokens: not self.has_open(batch))]


@shelves.add("the steps of a task stay with it", "Old steps are removed, wherever their task is.")
def steps_cleared_under_their_task() -> list[Swap]:
    clear = Clearing._clear_steps

    def blindly(self: Clearing, desk: Desk) -> None:
        with patch.object(View, "place", lambda self, task_key: None):
            clear(self, desk)

    return [(Clearing, "_clear_steps", blindly)]


@shelves.add("a damaged step was never one", "A step counts whatever its sum says.")
def damaged_step_believed() -> list[Swap]:
    return [(Step, "whole", property(lambda self: True))]


@shelves.add("a step is not lost to the next one", "An author removes its old steps before it publishes the new one.")
def trimmed_first() -> list[Swap]:
    def hastily(store: Store, task_id: str, name: StepName, step: dict[str, object]) -> None:
        for old in STEPS.names(store.fs, task_id):
            if old.attempt == name.attempt:
                STEPS.remove(store.fs, task_id, old)
        STEPS.publish(store, task_id, name, step)

    return [(versioned_files, "publish_step", hastily)]


@shelves.add("an attempt goes on from the last one", "The highest number counts, whichever attempt saved it.")
def former_attempt_counts() -> list[Swap]:
    def highest(fs: FileSystem, task_id: str, before: int) -> tuple[StepName, Step] | None:
        for name in sorted(STEPS.names(fs, task_id), key=lambda name: -name.number):
            step = _whole(fs, task_id, name)
            if step is not None:
                return name, step
        return None

    return [(versioned_files, "last_step", highest)]


def _whole(fs: FileSystem, task_id: str, name: StepName) -> Step | None:
    try:
        step = STEPS.read(fs, task_id, name)
    except BadFile:
        return None
    return step if step is not None and step.whole else None
