"""Which ids are in the archive: eight bytes for each, since there may be millions of them.

It keeps hashes, sorted, in many small arrays, so that the cost of a lookup or a change does not grow with all past
tasks.

Law: each task is held once, by how it ended last. An answer is by hash alone, and each pair of ids has one chance in
2**64 of an equal hash: a caller that cannot bear a wrong answer reads the archive.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from spoold.protocol.lifecycle import State
from spoold.store.archive import find_archived
from spoold.system.filesystem import FileSystem

_PARTS = 256
_MASK = (1 << 64) - 1
# How a task that is archived has ended, as people are shown it.
ENDS = (State.COMPLETED, State.FAILED, State.SKIPPED)


class Archived:
    """The keys of archived tasks, by how they ended."""

    def __init__(self) -> None:
        self._hashes: dict[State, list[array[int]]] = {state: [array("Q") for _ in range(_PARTS)] for state in ENDS}
        self.counts = dict.fromkeys(ENDS, 0)

    def __contains__(self, task_key: str) -> bool:
        return self.state(task_key) is not None

    def state(self, task_key: str) -> State | None:
        """Return how the archived task with that key ended; None for one that is not archived."""
        for state in [state for state, count in self.counts.items() if count]:
            part, index, found = self._find(state, task_key)
            if index < len(part) and part[index] == found:
                return state
        return None

    def add(self, task_key: str, state: State) -> None:
        """Record that the task's file is in the archive, as ended in this state."""
        self.discard(task_key)
        part, index, found = self._find(state, task_key)
        part.insert(index, found)
        self.counts[state] += 1

    def discard(self, task_key: str) -> None:
        """Record that the task's file is no longer in the archive, if it was."""
        state = self.state(task_key)
        if state is not None:
            part, index, _ = self._find(state, task_key)
            del part[index]
            self.counts[state] -= 1

    def _find(self, state: State, task_key: str) -> tuple[array[int], int, int]:
        """Return where a key's hash is, or would be: the array, the index in it, the hash."""
        found = hash(task_key) & _MASK
        part = self._hashes[state][found % _PARTS]
        return part, bisect_left(part, found), found


def still_archived(fs: FileSystem, task_id: str, blocked: set[str]) -> bool:
    """Whether the archive has a task that a listing saw there. Errors: OSError.

    While this user cannot list the task's directory, the task counts as archived: no other task may take its id.
    blocked: receives that directory, for the warnings.
    """
    closed: set[str] = set()
    found = find_archived(fs, task_id, closed)
    blocked |= closed
    return found is not None or bool(closed)
