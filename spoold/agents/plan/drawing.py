"""A plan as a tree of lines: each task once, below the last of those that it comes after, with what it does.

Law: pure. Whatever a task would run (a command with what it reads and its variables, the input of a handler, what has
to hold after it) is in the drawing, since a person decides by it. Text of the plan is not made harmless here, but
where it is printed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from spoold.protocol.amount import amount, some
from spoold.protocol.approval import Approval
from spoold.protocol.names import key
from spoold.protocol.task import Task

WORDS_MAX = 100
NAMED_MAX = 6
# Deeper tasks are not moved further to the right.
DEPTH_MAX = 12
# Fields of an input that have a line of their own, or decide nothing about what is run.
_SHOWN = frozenset(
    {"prompt", "prompt_file", "accept", "success_if", "workspace", "repo", "into", "must_change", "tasks"}
)


class Plan:
    """The tasks of a plan, with the ids under which they will be submitted. steps: how many run one after the other
    at least; widest: how many of them may run at the same time. batch: of the plan; a task in another one says so.
    """

    def __init__(self, ids: Sequence[str], tasks: Sequence[Task], batch: str | None = None) -> None:
        self.ids, self.tasks, self._batch = tuple(ids), tuple(tasks), batch
        self._number = {key(one): index for index, one in enumerate(ids)}
        self._parents = [self._of_plan((*t.dependencies, *t.after_any, *t.after_failed)) for t in tasks]
        self._step = self._steps()
        self.steps = max(self._step, default=0)
        self.widest = max(Counter(self._step).values(), default=0)

    def without_dependency(self) -> list[int]:
        """Return the numbers of the tasks that need the success of no other task of the plan."""
        return [number for number, task in enumerate(self.tasks) if not self._of_plan(task.dependencies)]

    def summary(self) -> str:
        """Return how much it is, as a sentence."""
        after = f"{amount(self.steps, 'step')} one after the other, " if self.steps > 1 else ""
        return f"{amount(len(self.ids), 'task')}, {after}at most {self.widest} at once"

    def lines(self) -> list[str]:
        """Return the tree."""
        below: dict[int, list[int]] = {}
        roots: list[int] = []
        for number, parents in enumerate(self._parents):
            last = max(parents, key=self._rank, default=None)
            (roots if last is None else below.setdefault(last, [])).append(number)
        drawn: list[str] = []
        open_ = [(number, 0) for number in reversed(roots)]
        while open_:
            number, depth = open_.pop()
            drawn += self._drawn(number, "  " * min(depth, DEPTH_MAX))
            open_ += [(child, depth + 1) for child in reversed(below.get(number, []))]
        return drawn

    def _of_plan(self, names: Sequence[str]) -> list[int]:
        return [self._number[key(one)] for one in dict.fromkeys(names) if key(one) in self._number]

    def _steps(self) -> list[int]:
        """Return for each task the number of its step, from 1. There is no circle: the plan was judged."""
        left = [len(parents) for parents in self._parents]
        children: dict[int, list[int]] = {}
        for number, parents in enumerate(self._parents):
            for parent in parents:
                children.setdefault(parent, []).append(number)
        step = [1] * len(left)
        free = [number for number, count in enumerate(left) if not count]
        while free:
            number = free.pop()
            for child in children.get(number, []):
                step[child] = max(step[child], step[number] + 1)
                left[child] -= 1
                if not left[child]:
                    free.append(child)
        return step

    def _drawn(self, number: int, indent: str) -> list[str]:
        task, under = self.tasks[number], max(self._parents[number], key=self._rank, default=None)
        rest = [one for one in self._needs(task) if under is None or key(one[0]) != key(self.ids[under])]
        also = [one for one, how in rest if not how]
        said = [task.kind, *(how.format(one) for one, how in self._needs(task) if how)]
        if also:
            said.append(f"{'also ' if under is not None else ''}after {some(also, NAMED_MAX)}")
        head = f"{indent}{self.ids[number]} ({'; '.join(said)})"
        other = [f"batch: {task.batch}"] if self._batch and task.batch and task.batch != self._batch else []
        return [head, *(f"{indent}    {line}" for line in [*told(task), *other])]

    def _rank(self, number: int) -> tuple[int, int]:
        return self._step[number], -number

    def _needs(self, task: Task) -> list[tuple[str, str]]:
        """Return what it comes after, each with the words for another condition than success."""
        ends = [(one, "when {} has ended") for one in task.after_any]
        failed = [(one, "if {} fails") for one in task.after_failed]
        batch = [(task.after_batch, "after the batch {}")] if task.after_batch else []
        return [*((one, "") for one in task.dependencies), *ends, *failed, *batch]


def told(task: Task) -> list[str]:
    """Return what a task does, and what has to hold, in lines."""
    said: Mapping[str, Any] = task.input if isinstance(task.input, Mapping) else {}
    checks: Any = said.get("success_if")
    command = checks.get("command") if isinstance(checks, Mapping) else None
    place: Any = said.get("workspace")
    rows = {
        "": task.command or task.python or _cut(said.get("prompt") or task.name),
        "arguments": _values(task.args or task.kwargs or task.calls),
        "reads": task.stdin,
        "variables": [f"{name}={value}" for name, value in task.env.items()],
        "starts in": task.cwd,
        "prompt of the file": said.get("prompt_file"),
        "accept": said.get("accept"),
        "succeeds if": command,
        "in": place.get("repo") if isinstance(place, Mapping) else said.get("repo"),
        "into": said.get("into"),
        "input": _values(_rest(task.input)),
        "locks": [*task.locks.write, *task.locks.read],
        "makes": task.artifacts,
        "asks": _asked(task.approval) if task.approval is not None else None,
        "held": task.hold,
        "child of": task.parent,
    }
    return [f"{name}: {words}" if name else words for name, value in rows.items() if (words := _words(value))]


def _rest(said: Any) -> Any:
    """Return what is said to a handler or an agent besides what the other lines show."""
    return {name: value for name, value in said.items() if name not in _SHOWN} if isinstance(said, Mapping) else said


def _values(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _asked(approval: Approval) -> str:
    """Return the question, and what follows where nobody answers, unless that is a no."""
    if approval.expires_s is None or approval.on_expire == "reject":
        return approval.ask
    return f"{approval.ask} (without an answer within {approval.expires_s:g} s: {approval.on_expire})"


def _cut(text: Any) -> str:
    """Return the beginning of what an agent is told. What is run as it stands is never cut."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= WORDS_MAX else f"{flat[: WORDS_MAX - 1]}…"


def _words(value: Any) -> str:
    """Return a value on one line; of a list, its parts."""
    if isinstance(value, list | tuple):
        parts = [" ".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for one in value]
        value = (", " if any(" " in part for part in parts) else " ").join(parts)
    return " ".join(str(value or "").split())
