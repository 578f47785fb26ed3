"""A running attempt that reports more than its task's own `budget` is stopped.

Law: only what the attempt itself reports counts, and only against the budget that its task names. Where the report
cannot be read, what was read last counts. The file is on the worker's own disk, and is looked at once a second at
most.
"""

from __future__ import annotations

from spoold.protocol.result import Code
from spoold.rules.attempts import outcome
from spoold.rules.attempts.figures import overspent
from spoold.rules.attempts.outcome import Outcome
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.reporting import look

LOOK_EVERY_S = 1.0


class OwnBudget:
    """The looks at what running attempts report."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._looked_at: dict[str, float] = {}

    def why_stop(self, attempt: Attempt, now: float) -> Outcome | None:
        """Why the attempt is stopped now, None if it goes on. now: monotonic, s."""
        if not attempt.task.reserves or attempt.over or attempt.stopping is not None:
            self._looked_at.pop(attempt.key, None)
            return None
        if now < self._looked_at.get(attempt.key, -LOOK_EVERY_S) + LOOK_EVERY_S:
            return None
        self._looked_at[attempt.key] = now
        look(attempt, self._scratch)
        said = overspent(attempt.task.reserves, attempt.reported)
        return None if said is None else outcome.failure(Code.BUDGET_EXCEEDED, said, final=True)
