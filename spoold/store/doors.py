"""What stands in the doors of leaders: batches that are being expanded, and tasks on their way in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spoold.protocol import layout
from spoold.protocol.names import BatchName, DoorName, TaskName, parse_batch, parse_door, parse_task
from spoold.store.absence import names_in
from spoold.system.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Standing:
    """One file in a door."""

    path: str
    door: DoorName
    name: TaskName | BatchName


def list_standing(fs: FileSystem) -> Iterator[Standing]:
    """The batches and tasks in all doors; staged lines are nobody's business. Errors: OSError."""
    for directory in sorted(fs.list(layout.ADMITTING)):
        door = parse_door(directory)
        if door is None:
            continue
        for name in sorted(names_in(fs, layout.join(layout.ADMITTING, directory))):
            parsed = parse_task(name) or parse_batch(name)
            if parsed is not None:
                yield Standing(layout.join(layout.ADMITTING, directory, name), door, parsed)
