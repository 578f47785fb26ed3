"""The threads in which a worker waits for a disk or a server: requests made at once take as long as one.

Law: each item is written once, by one thread, and `write` returns when all are done. What it calls must be safe in
several threads.

Touches: threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# At most this many threads wait for the disk at once.
HANDS_MAX = 16


class Writers:
    """As many hands as a worker has slots, one of them the caller's own thread."""

    def __init__(self, slots: int) -> None:
        self._hands = min(slots, HANDS_MAX)
        self._others = ThreadPoolExecutor(max(self._hands - 1, 1), "writer")

    def write(self, write: Callable[[T], bool], items: list[T]) -> list[T]:
        """Return the items that were written. Errors: those of `write`.

        Each hand gets all of its share at once: handing over one by one takes as long as some disks do.
        """

        def work(share: list[T]) -> list[T]:
            return [item for item in share if write(item)]

        mine, *theirs = (items[first :: self._hands] for first in range(self._hands))
        waiting = [self._others.submit(work, share) for share in theirs if share]
        return work(mine) + [item for share in waiting for item in share.result()]

    def close(self) -> None:
        """End without waiting for threads that wait for the disk."""
        self._others.shutdown(wait=False)
