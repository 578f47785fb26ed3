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

    def hear(self, ending: Ending) -> None:
        """A task has ended here."""
        self._lately.append(ending.duration_s)

    def free(self, held: int) -> int:
        """How many more than those `held` may be claimed; below 0 if there are too many already."""
        each = ahead(self._lately)
        brisk = self._slots - self._runner.engaged(SPAN_S) if each else 0
        return self._slots + each * max(brisk, 0) - held

    def relieve(self, held: int) -> None:
        """Give back what waits behind a task that turned out to be long. held: how many are here."""
        if held > self._slots:
            self._runner.relieve(PATIENCE_S)

    def due(self, now: float, held: int) -> float:
        """When `relieve` wants to be called again."""
        return now + PATIENCE_S if held > self._slots else math.inf
