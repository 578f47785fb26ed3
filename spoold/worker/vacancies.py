"""For how many more tasks this worker has a place: in its free slots, and ahead, in slots whose tasks are short."""

from __future__ import annotations

import math
from collections import deque

from spoold.rules.ahead import LATELY, PATIENCE_S, SPAN_S, ahead
from spoold.worker.job import Ending, RunnerPort


class Vacancies:
    """Knows how long tasks took lately, and sees to it that none waits for long behind another."""

    def __init__(self, runner: RunnerPort, slots: int) -> None:
        self._runner = runner
        self._slots = slots
        self._lately: deque[float] = deque(maxlen=LATELY)
        self._engaged = 0

    def hear(self, ending: Ending) -> None:
        """A task has ended here."""
        self._lately.append(ending.duration_s)

    def look(self, held: int) -> None:
        """See which tasks have turned out to be long, and give back what waits behind them. held: how many are here.

        Right after the endings were heard: later in a step, what has ended while the share was slow would seem long.
        """
        self._engaged = self._runner.engaged(SPAN_S)
        if held > self._slots:
            self._runner.relieve(PATIENCE_S)

    def free(self, held: int) -> int:
        """How many more than those `held` may be claimed; below 0 if there are too many already."""
        return self._slots + ahead(self._lately) * max(self._slots - self._engaged, 0) - held

    def due(self, now: float, held: int) -> float:
        """When to `look` again."""
        return now + PATIENCE_S if held > self._slots else math.inf
