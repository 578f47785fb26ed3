"""One waiting task as the backlog keeps it.

Law: there may be a million, so nothing is kept that the name of the file says.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.name_parts import rank_in
from spoold.protocol.names import TaskName, parse_task
from spoold.rules.gates.facts import Conditions
from spoold.rules.gates.registry import Groups


@dataclass(slots=True)
class Entry:
    """One waiting task. rest_until is on the leader's monotonic clock (s), 0 for none.
    file: its name in waiting/. Nothing more is kept, since there may be a million tasks; and names sort by urgency.
    runnable: all gates pass except those that are asked in every step; groups: those, with the task's group of each.
    """

    file: str
    lane: str
    conditions: Conditions
    rest_until: float = 0.0
    runnable: bool = False
    groups: Groups = ()

    @property
    def name(self) -> TaskName:
        """The fields of its name."""
        name = parse_task(self.file)
        assert name is not None
        return name

    @property
    def rank(self) -> int:
        """How urgent it is; a smaller rank is more urgent."""
        return rank_in(self.file)
