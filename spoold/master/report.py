"""Sentences and figures for people about a leader's work, gathered until the next snapshot.

Law: it decides nothing. `notices` are of one step and begin anew with each; the rest stays until it is no longer true
or was reported.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

# How long (s) a refused request stays among the warnings, and how many are remembered.
REFUSED_SHOWN_S, REFUSED_KEPT = 600.0, 1000


@dataclass(slots=True)
class LeaderReport:
    """The sentences and the figures.

    notices: of this step; locked: doors that this user may not empty; wrong: files in ready/ that are no tasks;
    refused: requests that were removed since their content is wrong, each with when (monotonic, s): no file is left
    to warn of; rejected: drops in rejected/; rejections, endings: drops that this leader rejected, and tasks that it
    ended itself, by cause, since the last snapshot; undone: moves that the server undid; undone_at: when (monotonic,
    s) the last one was seen.
    """

    notices: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=REFUSED_KEPT))
    rejected: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    undone: int = 0
    undone_at: float = -math.inf

    def begin_step(self) -> None:
        """Forget the notices of the step before."""
        self.notices.clear()

    def notice(self, *sentences: str) -> None:
        """Add sentences to those of this step."""
        self.notices += sentences

    def refuse(self, sentence: str, now: float) -> None:
        """Add a request that was removed since its content is wrong. now: monotonic, s."""
        self.refused.append((now, sentence))

    def refusals(self, now: float) -> list[str]:
        """Return the requests that were refused lately. now: monotonic, s."""
        return list(dict.fromkeys(said for at, said in self.refused if now - at < REFUSED_SHOWN_S))

    def saw_wrong(self, sentences: Iterable[str]) -> None:
        """Replace what is said of files in ready/ that are no tasks."""
        self.wrong[:] = sentences

    def lock(self, sentence: str) -> None:
        """Add a door that this user may not empty."""
        self.locked.append(sentence)

    def unlock_all(self) -> None:
        """Forget the doors: they are looked at anew."""
        self.locked.clear()

    def rejected_one(self, cause: str) -> None:
        """Count a drop that this leader rejected."""
        self.rejected += 1
        self.rejections[cause] += 1

    def brought_back(self) -> None:
        """Count a drop that has left rejected/ again."""
        self.rejected = max(0, self.rejected - 1)

    def count_rejected(self, there: int) -> None:
        """Correct the number of drops in rejected/ by a listing."""
        self.rejected = there

    def ended(self, cause: str) -> None:
        """Count a task that this leader ended itself, or an attempt that ended with its worker."""
        self.endings[cause] += 1

    def counted(self) -> None:
        """The causes are in a snapshot: count from nothing again."""
        self.endings.clear()
        self.rejections.clear()

    def undid(self, moves: int, now: float) -> None:
        """Count tokens that are back where they were before a move that the server confirmed. now: monotonic, s."""
        self.undone += moves
        self.undone_at = now
