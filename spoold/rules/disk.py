"""Is there room on the share? A warning first, then no new starts, so that what runs can still commit."""

from __future__ import annotations

from enum import Enum

from spoold.protocol.settings import DiskSettings


class Room(Enum):
    """How much room there is."""

    ENOUGH = "enough"
    LITTLE = "little"
    FULL = "full"


def room(total_bytes: int, free_bytes: int, settings: DiskSettings) -> Room:
    """The verdict on a file system of that size with that much free.

    A fraction alone would stop a huge disk with hundreds of GiB to spare, so that much free is always enough.
    """
    if total_bytes <= 0 or free_bytes >= settings.enough_free_mb << 20:
        return Room.ENOUGH
    used = 1 - free_bytes / total_bytes
    if used >= settings.stop:
        return Room.FULL
    return Room.LITTLE if used >= settings.warn else Room.ENOUGH
