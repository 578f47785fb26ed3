"""ready/ → claimed/<me>/: which task this worker takes next.

A worker lists only the lanes that it can serve and takes the most urgent task it has room for. Losing a race is
normal; after one it jumps ahead in the list, so that a crowd spreads out instead of losing one after the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from spoold.protocol import layout
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.rules.matching import fits, free, unfit
from spoold.store.lanes import list_lanes, list_tasks
from spoold.store.mover import Fate
from spoold.store.store import Store

JUMP = 7


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ready task that this worker could serve."""

    name: TaskName
    lane_name: str
    lane: Lane

    @property
    def urgency(self) -> tuple[int, str]:
        """Sorts as names do: rank, then age."""
        return (self.name.rank, self.name.order)


class Claiming:
    """Finds and takes tasks for one worker."""

    def __init__(self, store: Store, can: Capabilities) -> None:
        self._store = store
        self._can = can
        self._serves: dict[str, bool] = {}
        self.lost = 0

    def candidates(self) -> list[Candidate]:
        """What is ready in the lanes that this worker can serve, most urgent first. Errors: OSError."""
        found: list[Candidate] = []
        for lane_name, lane in list_lanes(self._store.fs, layout.READY).items():
            if lane_name not in self._serves:
                self._serves[lane_name] = unfit(lane, self._can) is None
            if self._serves[lane_name]:
                directory = layout.join(layout.READY, lane_name)
                tasks = list_tasks(self._store.fs, directory).values()
                found += [Candidate(task, lane_name, lane) for task in tasks]
        return sorted(found, key=lambda candidate: candidate.urgency)

    def claim(self, slots: int, running: list[Lane], shy: set[str]) -> Iterator[Candidate]:
        """Claim up to `slots` tasks, yielding each as it is mine. Errors: OSError.

        running: the demands of what runs already; shy: keys that another worker should have first.
        """
        if slots <= 0:
            return
        left, taken, index = self.candidates(), list(running), 0
        while slots > 0 and left:
            index = index if index < len(left) else 0
            candidate = left.pop(index)
            if candidate.name.id.lower() in shy or not fits(candidate.lane, free(self._can, taken)):
                continue
            src = layout.ready(candidate.lane_name, candidate.name.encode())
            moved = self._store.move(src, layout.claimed(self._store.writer, candidate.name.encode()))
            if moved:
                slots -= 1
                taken.append(candidate.lane)
                yield candidate
            elif moved.fate is Fate.LOST:
                self.lost += 1
                index = self._jump(len(left))
            else:
                return  # my directory is gone, or nobody knows: the next step looks again

    def _jump(self, left: int) -> int:
        """A place further on, another one for each worker and each loss."""
        return zlib.crc32(f"{self._store.writer}.{self.lost}".encode()) % min(left, JUMP) if left else 0
