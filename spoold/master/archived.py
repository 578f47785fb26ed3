"""Which ids stand in the archive: eight bytes for each, since there may be millions of them.

Kept are hashes, sorted, in many small arrays, so that neither a question nor a change costs more with all that ever
was. Two ids of one hash are as likely as one in 2**64 for each pair; whoever acts on an answer reads the archive.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from spoold.protocol.lifecycle import State
from spoold.store.archive import find_archived
from spoold.system.filesystem import FileSystem

_PARTS = 256
_MASK = (1 << 64) - 1


class Archived:
    """The keys of archived tasks, by how they ended."""

    def __init__(self) -> None:
        self._hashes: dict[State, list[array[int]]] = {
            state: [array("Q") for _ in range(_PARTS)] for state in (State.COMPLETED, State.FAILED)
        }
        self.counts = {State.COMPLETED: 0, State.FAILED: 0}

    def __contains__(self, task_key: str) -> bool:
        return self.state(task_key) is not None

    def state(self, task_key: str) -> State | None:
        """How the archived task with that key ended; None for one that is not archived."""
        for state in [state for state, count in self.counts.items() if count]:
            part, index, found = self._find(state, task_key)
            if index < len(part) and part[index] == found:
                return state
        return None

    def add(self, task_key: str, state: State) -> None:
        """The task's file is in the archive, as ended in this state."""
        self.discard(task_key)
        part, index, found = self._find(state, task_key)
        part.insert(index, found)
        self.counts[state] += 1

    def discard(self, task_key: str) -> None:
        """The task's file is no longer in the archive, if it was."""
        state = self.state(task_key)
        if state is not None:
            part, index, _ = self._find(state, task_key)
            del part[index]
            self.counts[state] -= 1

    def _find(self, state: State, task_key: str) -> tuple[array[int], int, int]:
        """Where a key's hash stands, or would stand: the array, the place in it, the hash."""
        found = hash(task_key) & _MASK
        part = self._hashes[state][found % _PARTS]
        return part, bisect_left(part, found), found


def still_archived(fs: FileSystem, task_id: str, blocked: set[str]) -> bool:
    """Whether the archive has a task that was seen there, by a listing. Errors: OSError.

    Its directory is believed to have it while this user may not list that: nothing else may take its id. blocked:
    keeps the directory, for people.
    """
    closed: set[str] = set()
    found = find_archived(fs, task_id, closed)
    blocked |= closed
    return found is not None or bool(closed)
