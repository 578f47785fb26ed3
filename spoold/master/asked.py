"""The ready task that is to try a limit, or a type, again, and how long the others wait for a worker to take it.

Law: one lane is asked at a time. If no worker takes its task, and a lane that was not asked yet waits for the same
trial, that one is asked next. Then all are asked anew, and each has twice as long. Nothing here is saved: a new
leader asks from the beginning.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from spoold.protocol.names import TaskName

# For so many heartbeat intervals a task may stand untaken at first, and at last.
FIRST_BEATS, LAST_BEATS = 2.0, 64.0


@dataclass(slots=True)
class Asked:
    """Who is asked. task and lane: the one that stands in ready/; since: when (monotonic, s) it was first seen there;
    passed: the lanes that were asked in vain; rounds: how often all were.
    """

    task: TaskName | None = None
    lane: str = ""
    since: float = 0.0
    passed: set[str] = field(default_factory=set)
    rounds: int = 0

    def see(self, lane: str, task: TaskName, now: float) -> None:
        """Note the task that stands in ready/. now: monotonic, s."""
        if self.task != task:
            self.task, self.lane, self.since = task, lane, now

    def see_none(self) -> None:
        """Note that none stands there: no other lane could be asked."""
        self.task = None
        self.passed.clear()

    def in_vain(self, now: float, interval_s: float) -> bool:
        """Whether the task has stood there for as long as it may. now: monotonic, s."""
        beats = min(FIRST_BEATS * 2**self.rounds, LAST_BEATS)
        return self.task is not None and now - self.since >= beats * interval_s

    def pass_on(self, others: Collection[str]) -> bool:
        """Pass over the lane that was asked. others: the other lanes that wait for the trial; False if none does."""
        if not others:
            return False
        if self.passed.issuperset(others):
            self.passed.clear()
            self.rounds += 1
        self.passed.add(self.lane)
        self.task = None
        return True
