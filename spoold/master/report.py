"""Sentences and figures for people about a leader's work, gathered until the next snapshot.

Law: it decides nothing. `notices` are of one step and begin anew with each; the rest stays until it is no longer true
or was reported.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class LeaderReport:
    """The sentences and the figures.

    notices: of this step; locked: doors that this user may not empty; rejected: drops in rejected/; rejections,
    endings: drops that this leader rejected, and tasks that it ended itself, by cause, since the last snapshot;
    undone: moves that the server undid; undone_at: when (monotonic, s) the last one was seen.
    """

    notices: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    rejected: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    undone: int = 0
    undone_at: float = -math.inf

    def undid(self, moves: int, now: float) -> None:
        """Count tokens that are back where they were before a move that the server confirmed. now: monotonic, s."""
        self.undone += moves
        self.undone_at = now
