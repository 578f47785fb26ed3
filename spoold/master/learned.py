"""What a leader has learned of tasks that are waiting, ready or claimed.

Law: only `learning` and the leader's own moves write here, and all of it can be read from the tasks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spoold.rules.gates.budget import NAME as BUDGET
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.locks import NAME
from spoold.rules.locks.demand import NO_LOCKS, Demand
from spoold.rules.scheduling.spending import NOTHING, Asked


@dataclass(slots=True)
class Learned:
    """By key of a task. lanes: of ready or claimed tasks; deadlines: wall time (s), of tasks that have one; asked:
    what tasks with conditions say of budgets, and demands: what they lock, once they were read; unlearned: since when
    (monotonic, s) lane and content are to be looked up; unsure: those of them that were read, and may run as another
    type than their own, which their workers have not said yet; also: more lanes of which a lost claim may have been.
    settled: names in failed/ that no power cut takes back, as `dependents` found.
    """

    lanes: dict[str, str] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    unlearned: dict[str, float] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    also: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def learn_lane(self, task_key: str, lane: str) -> None:
        """Note the lane of a task that is ready or claimed."""
        self.lanes[task_key] = lane

    def learn_lanes(self, task_key: str, lanes: Sequence[str]) -> None:
        """Note the lanes of which a lost claim may have been, that of its own type first."""
        self.lanes[task_key], self.also[task_key] = lanes[0], tuple(lanes[1:])

    def all_lanes(self, task_key: str) -> tuple[str, ...]:
        """The lanes of which a task may be that is ready or claimed; '' where none is known."""
        return self.lanes.get(task_key, ""), *self.also.get(task_key, ())

    def learn_deadline(self, task_key: str, moment: float) -> None:
        """Note a task's deadline (wall time, s)."""
        self.deadlines[task_key] = moment

    def learn_asked(self, task_key: str, asked: Asked) -> None:
        """Note what a task with conditions says of budgets."""
        self.asked[task_key] = asked

    def asked_by(self, task_key: str) -> Asked | None:
        """What a task says of budgets; None while that is to be looked up."""
        return None if task_key in self.unlearned else self.asked.get(task_key, NOTHING)

    def learn_demand(self, task_key: str, conditions: Conditions) -> None:
        """Note what a task locks that is ready or claimed, or may be before long."""
        if conditions is not NO_CONDITIONS:
            asked = conditions.asks(NAME)
            self.demands[task_key] = asked if isinstance(asked, Demand) else NO_LOCKS

    def conditions(self, task_key: str) -> Conditions:
        """What is known of the budgets and locks of a task that is ready."""
        known = ((BUDGET, self.asked.get(task_key)), (NAME, self.demands.get(task_key)))
        return Conditions(more=tuple((gate, asked) for gate, asked in known if asked))

    def learn_no_demand(self, task_key: str) -> None:
        """Note that a task locks nothing."""
        self.demands[task_key] = NO_LOCKS

    def waits(self, task_key: str, deadline: float | None) -> None:
        """Note that a task waits, where the backlog knows its lane and locks; its deadline stays of interest."""
        self.lanes.pop(task_key, None)
        self.also.pop(task_key, None)
        self.demands.pop(task_key, None)
        if deadline is not None:
            self.deadlines[task_key] = deadline

    def look_up(self, task_key: str, now: float) -> None:
        """Note that lane and deadline of a task are to be looked up. now: monotonic, s; the first time counts."""
        self.unlearned.setdefault(task_key, now)

    def looked_up(self, task_key: str, now: float) -> float:
        """Note that nothing more is to be looked up of a task; return since when (monotonic, s) it was."""
        self.unsure.discard(task_key)
        return self.unlearned.pop(task_key, now)

    def doubt_type(self, task_key: str) -> None:
        """Note that a claim was read, and that its worker has not said yet as which type it runs."""
        self.unsure.add(task_key)

    def may_run_in(self, lane: str) -> bool:
        """Whether a ready or claimed task may be of this lane."""
        return bool(self.unlearned) or lane in self.lanes.values()

    def forget(self, task_key: str) -> None:
        """Forget a task that has ended."""
        self.lanes.pop(task_key, None)
        self.also.pop(task_key, None)
        self.demands.pop(task_key, None)
        self.deadlines.pop(task_key, None)
        self.asked.pop(task_key, None)
