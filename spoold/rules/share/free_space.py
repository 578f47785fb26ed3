"""Is there room on the share? A warning first, then nothing is admitted and nothing starts, so that running tasks can
still commit.

Room is space, and inodes if the file system counts them: each new file needs one, whatever space is left.

Law: enough_free_mb is enough whatever the fraction. Unknown is no shortage: neither a size of 0 bytes nor inodes that
are not counted. A full share stops admissions and starts, and nothing that runs.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from spoold.protocol.amount import amount

# Free inodes below which people are warned; below which the rest is reserved for results and beats.
FEW_INODES, NO_INODES = 1000, 100
# How each warning begins.
_ABOUT = "the share is "
READ_ONLY = (
    f"{_ABOUT}mounted read-only here, so this machine can submit, start and finish nothing; mount it read-write"
)


class Limits(Protocol):
    """The section [disk] of spool.toml."""

    @property
    def warn(self) -> float:
        """The fraction in use at which people are warned."""
        ...

    @property
    def stop(self) -> float:
        """The fraction in use at which nothing new starts."""
        ...

    @property
    def enough_free_mb(self) -> int:
        """MiB free that are enough, whatever the fraction."""
        ...


class Room(Enum):
    """How much room there is, in words."""

    ENOUGH = f"{_ABOUT}roomy"
    LITTLE = f"{_ABOUT}nearly full"
    FEW_FILES = f"{_ABOUT}nearly out of inodes"
    FULL = f"{_ABOUT}full"
    NO_FILES = f"{_ABOUT}out of inodes"

    @property
    def full(self) -> bool:
        """Whether nothing new is admitted and nothing starts."""
        return self in (Room.FULL, Room.NO_FILES)

    @property
    def mend(self) -> str:
        """The advice to a person."""
        if self in _OF_INODES:
            return "remove files from the share, or let it have more inodes"
        return "free some room, or set [disk] in spool.toml"


_OF_INODES = (Room.FEW_FILES, Room.NO_FILES)


def share_used(total_bytes: int, free_bytes: int) -> float:
    """The fraction of a file system in use; 0 for one that does not say its size."""
    return 1 - free_bytes / total_bytes if total_bytes > 0 else 0.0


def room(total_bytes: int, free_bytes: int, free_inodes: int | None, settings: Limits) -> Room:
    """The verdict on a file system of that size with that much free; free_inodes: None if they are not counted.

    A fraction alone would stop a huge disk with hundreds of GiB to spare, so that much free is always enough.
    """
    plenty = free_bytes >= settings.enough_free_mb << 20
    used = 0.0 if plenty else share_used(total_bytes, free_bytes)
    inodes = FEW_INODES if free_inodes is None else free_inodes
    if used >= settings.stop:
        return Room.FULL
    if inodes < NO_INODES:
        return Room.NO_FILES
    if used >= settings.warn:
        return Room.LITTLE
    return Room.FEW_FILES if inodes < FEW_INODES else Room.ENOUGH


def shortage(total_bytes: int, free_bytes: int, free_inodes: int | None, settings: Limits) -> str:
    """The verdict with the figure behind it, for people."""
    verdict = room(total_bytes, free_bytes, free_inodes, settings)
    if verdict in _OF_INODES:
        return f"{verdict.value}: {amount(free_inodes or 0, 'inode')} left"
    return f"{verdict.value}: {100 * share_used(total_bytes, free_bytes):.0f} % of it is in use"


def warnings(total_bytes: int, free_bytes: int, free_inodes: int | None, settings: Limits) -> list[str]:
    """The warnings about the room: none if there is enough."""
    verdict = room(total_bytes, free_bytes, free_inodes, settings)
    if verdict is Room.ENOUGH:
        return []
    if verdict in _OF_INODES:
        stops = "; no drop is admitted and no task starts until files are removed" if verdict.full else ""
        return [f"{verdict.value}: {amount(free_inodes or 0, 'inode')} left, one for each new file{stops}"]
    used = 100 - 100 * free_bytes // max(total_bytes, 1)
    stops = "; no drop is admitted and no task starts until space is freed" if verdict.full else ""
    return [f"{_ABOUT}{used} % full{stops} ([disk] in spool.toml)"]


def is_warning(text: str) -> bool:
    """Whether this is one of these warnings, which a later look replaces."""
    return text.startswith(_ABOUT)
