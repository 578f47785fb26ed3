"""What journals say of moves: nobody tells of more than there were.

A line may be missing, since a crash loses history. One that is there tells of a move that was made, whoever made it:
a writer whose move was carried out by somebody else, or late, may take it for its own. Of two machines that are one
node each may take it so.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from spoold.protocol.names import EndedName, TaskName, key
from tests.sim.conduct import Broken

# The events that tell where a token went under the attempt that the line names.
TARGETS = {
    "READY": ("ready",),
    "HELD": ("waiting",),
    "CLAIMED": ("claimed",),
    "COMPLETED": ("completed",),
    "ADMITTED": ("waiting", "ready"),
}

_Move = tuple[str, int, tuple[str, ...]]


@dataclass(slots=True)
class Journals:
    """Counts moves, and the lines that tell of them, by writer; a line that was written twice is one.

    twice: the writers under whose name more than one process has run, and how many more.
    """

    twice: Counter[str] = field(default_factory=Counter)
    _moves: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    _told: Counter[tuple[str, _Move]] = field(default_factory=Counter)
    _read: set[tuple[str, int]] = field(default_factory=set)

    def moved(self, name: TaskName | EndedName, dst: str) -> None:
        """After a token was moved."""
        self._moves[key(name.id), name.attempt, dst.partition("/")[0]] += 1

    def told(self, data: bytes) -> None:
        """After lines were added to a journal. Errors: Broken."""
        for line in filter(None, data.splitlines()):
            event = json.loads(line)
            targets = TARGETS.get(event["event"])
            if targets is None or (event["writer"], event["seq"]) in self._read:
                continue
            self._read.add((event["writer"], event["seq"]))
            task, attempt, writer = key(event["task"]), event["attempt"], event["writer"]
            self._told[writer, (task, attempt, targets)] += 1
            made = sum(self._moves[task, attempt, target] for target in targets)
            if self._told[writer, (task, attempt, targets)] > made * (1 + self.twice[writer]):
                raise Broken(f"told: {writer} says {event['event']} of {task}, attempt {attempt}; moved {made} times")
