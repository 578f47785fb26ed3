"""For how many more tasks this worker has a place: in its free slots, and ahead, in slots whose tasks are short.

Law: tasks that wait behind a long one go back, for other workers to run. Nothing is claimed ahead for a slot whose
task has turned out to be long, and nothing at all while a task that had lent its slot waits for one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from spoold.rules.scheduling.ahead import FORGET_S, LATELY, PATIENCE_S, ahead
from spoold.runner.job import Ending, RunnerPort
from spoold.worker.attempts.lending import Lending


class Vacancies:
    """Knows how long tasks took lately, and ensures that no task waits for long behind another."""

    def __init__(self, runner: RunnerPort, slots: int, lending: Lending) -> None:
        self._runner, self.lending = runner, lending
        self._slots = slots
        self._lately: deque[float] = deque(maxlen=LATELY)
        self._heard_at = -math.inf
        self._engaged = 0

    def look(self, now: float, ended: Iterable[Ending], held: int) -> None:
        """See which tasks were short, and which have turned out to be long: tasks that wait behind those go back.

        Call it right after the endings were heard: later in a step, tasks that ended while the share was slow would
        seem long. held: how many tasks are here; now: monotonic, s.
        """
        if now - self._heard_at > FORGET_S:
            self._lately.clear()
        for ending in ended:
            self._lately.append(ending.duration_s)
            self._heard_at = now
        self._engaged = self._runner.engaged(PATIENCE_S)
        if held - self.lending.lent > self._slots:
            self._runner.relieve(PATIENCE_S)

    def free(self, held: int) -> int:
        """Return how many more than those `held` may be claimed; below 0 if there are too many already.

        None while a task that had lent its slot waits for one.
        """
        if not self.lending.claims:
            return 0
        held -= self.lending.lent
        return self._slots + ahead(self._lately) * max(self._slots - self._engaged, 0) - held

    def due(self, now: float, held: int) -> float:
        """When to `look` again."""
        soon = self.lending.due(now)
        return min(soon, now + PATIENCE_S) if held - self.lending.lent > self._slots else soon
