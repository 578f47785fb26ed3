"""The tasks of a cell. Pure.

Law: every id is of letters, digits and dashes, so that the ledger can read names without spoold's grammar.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tools.laboratory.guests import HERE

WORK = f"{HERE}/guest/work"
LONG_S, MIDDLE_S = 10, 3
COMMAND = ["sh", WORK, "0"]  # of no length
# As many as three laptops have slots, and longer than any of them is about to begin.
STEADY, STEADY_S = 12, 45


@dataclass(slots=True)
class Workload:
    """Tasks as lines of a batch, and what each waits for.

    stems: how many more come of drops of this stem that name no id; refused: drops that may stay in rejected/;
    more: what tasks say beside their length and order.
    """

    lines: list[str] = field(default_factory=list)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    stems: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    more: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, task: str, seconds: int, after: tuple[str, ...] = (), priority: int = 0, **more: Any) -> None:
        """One task that works that long; more: other fields of it."""
        told = {"id": task, "command": ["sh", WORK, str(seconds)], "after": list(after), "priority": priority}
        self.lines.append(json.dumps(told | more))
        self.parents[task] = after
        if more:
            self.more[task] = more

    def expect(self, more: Workload) -> None:
        """What somebody else submits: it counts, and is no line of this batch."""
        self.parents |= more.parents
        self.stems |= more.stems
        self.refused |= more.refused

    @property
    def tasks(self) -> int:
        """How many there are to be."""
        return len(self.parents) + sum(self.stems.values())

    @property
    def batch(self) -> str:
        """The content of a .jsonl file."""
        return "\n".join(self.lines) + "\n"


def short(tasks: int) -> Workload:
    """That many tasks of no length, and a DAG."""
    workload = Workload()
    for number in range(tasks):
        workload.add(f"short-{number:04d}", 0)
    _add_dag(workload)
    return workload


def under_fault() -> Workload:
    """Enough of each length that every laptop has some: of ten seconds, of three, of none; and a DAG."""
    workload = Workload()
    for number in range(6):
        workload.add(f"long-{number}", LONG_S, priority=20)
        workload.add(f"middle-{number}", MIDDLE_S, priority=20)
    for number in range(40):
        workload.add(f"short-{number:02d}", 0)
        if number % 4 == 0:
            workload.add(f"second-{number:02d}", 1)
    _add_dag(workload)
    return workload


def steady() -> Workload:
    """One long task for each slot."""
    workload = Workload()
    for number in range(STEADY):
        workload.add(f"steady-{number:02d}", STEADY_S)
    return workload


def _add_dag(workload: Workload) -> None:
    """A source, eight beside each other, a join, and a chain of four behind it."""
    workload.add("dag-source", 0)
    middle = tuple(f"dag-middle-{number}" for number in range(8))
    for task in middle:
        workload.add(task, 0, ("dag-source",))
    workload.add("dag-join", 0, middle)
    before = "dag-join"
    for number in range(4):
        workload.add(f"dag-chain-{number}", 0, (before,))
        before = f"dag-chain-{number}"
