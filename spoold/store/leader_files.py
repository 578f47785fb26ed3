"""What names say of leaders: the tokens in master/, as they are now, and the files in the leaders' doors.

Law: only names decide, and no file is opened. There should be one token, and of several the highest counts. A token
with the highest possible number is none, since no master could lead after it. Foreign and staged files are passed
over, and so is a batch whose lines are all tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spoold.protocol import layout
from spoold.protocol.admission_names import BatchName, DoorEntry, DoorName, parse_door, parse_standing
from spoold.protocol.names import BEAT_MAX, EPOCH_MAX, LeaseName, parse_lease
from spoold.store.existence import names_in
from spoold.system.filesystem import FileSystem


def list_leases(fs: FileSystem) -> list[LeaseName]:
    """All of them; there should be one. Errors: OSError."""
    return [lease for lease in map(parse_token, fs.list(layout.MASTER)) if lease is not None]


def parse_token(name: str) -> LeaseName | None:
    """A name in master/, or None. A token with the highest number is none: no master could lead after it."""
    lease = parse_lease(name)
    return lease if lease is not None and lease.epoch < EPOCH_MAX and lease.beat < BEAT_MAX else None


def read_lease(fs: FileSystem) -> LeaseName | None:
    """The token that counts; None if there is none. Errors: OSError."""
    return max(list_leases(fs), default=None)


# The files in the doors of leaders: batches that are being expanded, tasks and originals on their way in.


@dataclass(frozen=True, slots=True)
class DoorFile:
    """One file in a door."""

    path: str
    door: DoorName
    name: DoorEntry


def is_watched(name: DoorEntry) -> bool:
    """Whether all lines of this batch are tasks: its leader only checks the file for more lines."""
    return isinstance(name, BatchName) and name.size is not None and name.done == name.size


def list_standing(fs: FileSystem, blocked: set[str] | None = None) -> Iterator[DoorFile]:
    """The drops in all doors that become tasks, without staged and only watched files. Errors: OSError.

    A door that this user may not list is passed over. blocked: collects such doors.
    """
    blocked = set() if blocked is None else blocked
    for directory in sorted(fs.list(layout.ADMITTING)):
        door = parse_door(directory)
        if door is None:
            continue
        for name in sorted(names_in(fs, layout.join(layout.ADMITTING, directory), blocked)):
            parsed = parse_standing(name)
            if parsed is not None and not is_watched(parsed):
                yield DoorFile(layout.join(layout.ADMITTING, directory, name), door, parsed)
