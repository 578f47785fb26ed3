"""One waiting task as the backlog keeps it, and an index of those that wait for a request.

Law: there may be a million, so nothing is kept that the name of the file says.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spoold.protocol.names import TaskName, age_in, key, parse_task, rank_in
from spoold.rules.gates.approval_gate import asked_of
from spoold.rules.gates.facts import Conditions
from spoold.rules.gates.gate import Verdict, Wait, Wake
from spoold.rules.gates.registry import Groups, wakes_of
from spoold.rules.gates.standing_requests import Requested, decision, open_questions, record, records, rounds


@dataclass(slots=True)
class Entry:
    """One waiting task. rest_until is on the leader's monotonic clock (s), 0 for none.
    file: its name in waiting/. Nothing more is kept, since there may be a million tasks; and names sort by urgency.
    runnable: all gates pass except those that are asked in every step; groups: those, with the task's group of each.
    share: whose turn it needs, see `fair_shares`.
    """

    file: str
    lane: str
    conditions: Conditions
    rest_until: float = 0.0
    runnable: bool = False
    groups: Groups = ()
    share: str = ""

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


# The requests that stand about single tasks, and the tasks that wait for one, by the gate that says so.
# Law: an index, which costs nothing while nothing comes or goes, however many tasks wait.


class Parked:
    """Tasks by gate and key. requested: the requests about each task, by key, whether it waits or not."""

    def __init__(self) -> None:
        self.requested: dict[str, tuple[Requested, ...]] = {}
        self._open: dict[str, int] = {}
        self._gate: dict[str, str] = {}
        self._files: dict[str, dict[str, str]] = {}
        self._news: dict[str, dict[str, None]] = {}
        self._ages: dict[str, list[tuple[str, str]]] = {}

    def see(self, task_key: str, requests: tuple[Requested, ...]) -> None:
        """Take in the requests about a task that stand now."""
        self.requested[task_key] = requests
        self._open[task_key] = len(open_questions(requests))
        if not requests:
            del self.requested[task_key]
        if not self._open[task_key]:
            del self._open[task_key]

    @property
    def questions(self) -> int:
        """How many questions nobody has answered."""
        return sum(self._open.values())

    @property
    def unasked(self) -> int:
        """How many tasks wait for an answer to a question that does not stand."""
        return self.count("approval") - sum(self.at("approval", task_key) for task_key in self._open)

    def names(self, task_key: str) -> bool:
        """Whether a request about the task stands."""
        return task_key in self.requested

    def rejection(self, task: TaskName, entry: Entry | None) -> dict[str, Any] | None:
        """Who rejected a task that waited for an answer, when and why; None where its time has ended."""
        approval = None if entry is None else asked_of(entry.conditions)
        if approval is None:
            return None
        requests = self.requested.get(key(task.id), ())
        given = decision(requests, approval, task.order)
        if given is None:
            return None
        before = records(one for one in rounds(requests) if one.order != task.order)
        return record(given, approval.ask, approval.choices) | ({"rounds": before} if before else {})

    def judged(self, task_key: str, file: str, verdict: Verdict | None) -> bool:
        """Take in the verdict on a task; True when a moment that its gate did not name may change it."""
        wakes = wakes_of(verdict) if isinstance(verdict, Wait) else frozenset()
        if not isinstance(verdict, Wait) or Wake.REQUEST not in wakes:
            self.leave(task_key)
            return Wake.TIME in wakes
        self._park(verdict.gate, task_key, file)
        return False

    def _park(self, gate: str, task_key: str, file: str) -> None:
        if self._gate.get(task_key) == gate and self._files[gate][task_key] == file:
            return
        self.leave(task_key)
        self._gate[task_key] = gate
        self._files.setdefault(gate, {})[task_key] = file
        self._news.setdefault(gate, {})[task_key] = None
        heapq.heappush(self._ages.setdefault(gate, []), (age_in(file), task_key))

    def leave(self, task_key: str) -> None:
        """Forget a task that waits there no longer."""
        gate = self._gate.pop(task_key, None)
        if gate is not None:
            del self._files[gate][task_key]
            self._news[gate].pop(task_key, None)

    def at(self, gate: str, task_key: str) -> bool:
        """Whether the task waits at this gate."""
        return self._gate.get(task_key) == gate

    def count(self, gate: str) -> int:
        """How many tasks wait at a gate."""
        return len(self._files.get(gate, ()))

    def oldest(self, gate: str) -> str | None:
        """The file of the task with the earliest order that waits at a gate."""
        ages, files = self._ages.get(gate, []), self._files.get(gate, {})
        while ages:
            age, task_key = ages[0]
            if task_key in files and age_in(files[task_key]) == age:
                return files[task_key]
            heapq.heappop(ages)
        return None

    def take(self, gate: str, most: int) -> Iterator[str]:
        """The keys that came to a gate and were not taken yet, the first ones, at most so many."""
        news = self._news.get(gate, {})
        for _ in range(min(most, len(news))):
            task_key = next(iter(news))
            del news[task_key]
            yield task_key
