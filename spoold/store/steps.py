"""The steps of a task: published, listed, and the last one that is whole.

Law: a step is published whole and never replaced. An author removes only earlier steps of its own.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.step import BYTES_MAX, KEPT, Step, StepName, parse_step
from spoold.store.shelf import Shelf, file_max
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem

# The owner of a step is its task.
STEPS = Shelf(layout.STEPS, parse_step, Step, file_max(BYTES_MAX))


def publish_step(store: Store, task_id: str, name: StepName, step: dict[str, object]) -> None:
    """Publish a step, and remove the author's steps of this attempt that are no longer needed. Errors: OSError."""
    STEPS.publish(store, task_id, name, step)
    own = [each for each in STEPS.names(store.fs, task_id) if each.attempt == name.attempt]
    for old in own[:-KEPT]:
        STEPS.remove(store.fs, task_id, old)


def last_step(fs: FileSystem, task_id: str, before: int) -> tuple[StepName, Step] | None:
    """The last whole step of the attempts up to this one; None for none. Errors: OSError."""
    for name in reversed([each for each in STEPS.names(fs, task_id) if each.attempt <= before]):
        try:
            step = STEPS.read(fs, task_id, name)
        except BadFile:
            continue
        if step is not None and step.whole:
            return name, step
    return None
