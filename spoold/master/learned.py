"""What a leader has learned of tasks that are waiting, ready or claimed.

Law: only `learning` and the leader's own moves write here, and all of it can be read from the tasks again.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Learned:
    """By key of a task. lanes: of ready or claimed tasks; deadlines: wall time (s), of tasks that have one;
    unlearned: since when (monotonic, s) lane and deadline are to be looked up. settled: names in failed/ that no
    power cut takes back, as `dependents` found.
    """

    lanes: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    unlearned: dict[str, float] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def forget(self, task_key: str) -> None:
        """Forget a task that has ended."""
        self.lanes.pop(task_key, None)
        self.deadlines.pop(task_key, None)
