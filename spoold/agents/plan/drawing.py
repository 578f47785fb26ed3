"""A plan as a tree of lines: each task once, below the last of those that it comes after, with what it does.

Law: pure. All that a task says is in the drawing, since a person decides by it: the head and the place in the tree
say its type and what it comes after, `pictures.work` the rest. Nothing is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spoold.pictures import work
from spoold.protocol.amount import amount
from spoold.protocol.names import key
from spoold.protocol.task import Task

# Deeper tasks are not moved further to the right.
DEPTH_MAX = 12
# What the head of a task and its place in the tree say.
HEAD = ("type", "dependencies", "after_any", "after_failed", "after_batch")


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

    def lines(self, width: int | None = None) -> list[str]:
        """Return the tree. width: of the terminal in columns, None for lines of any length."""
        below: dict[int, list[int]] = {}
        roots: list[int] = []
        for number, parents in enumerate(self._parents):
            last = max(parents, key=self._rank, default=None)
            (roots if last is None else below.setdefault(last, [])).append(number)
        drawn: list[str] = []
        open_ = [(number, 0) for number in reversed(roots)]
        while open_:
            number, depth = open_.pop()
            drawn += self._drawn(number, "  " * min(depth, DEPTH_MAX), width)
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

    def _drawn(self, number: int, indent: str, width: int | None) -> list[str]:
        task, under = self.tasks[number], max(self._parents[number], key=self._rank, default=None)
        rest = [one for one in self._needs(task) if under is None or key(one[0]) != key(self.ids[under])]
        also = [one for one, how in rest if not how]
        said = [task.kind, *(how.format(one) for one, how in self._needs(task) if how)]
        if also:
            said.append(f"{'also ' if under is not None else ''}after {', '.join(also)}")
        head = f"{self.ids[number]} ({'; '.join(said)})"
        elsewhere = (*HEAD, "batch") if task.batch == self._batch else HEAD
        rows = work.drawn(work.parts(task, elsewhere), width, f"{indent}    ")
        return [*work.drawn([work.Part("", (head,))], width, indent), *rows]

    def _rank(self, number: int) -> tuple[int, int]:
        return self._step[number], -number

    def _needs(self, task: Task) -> list[tuple[str, str]]:
        """Return what it comes after, each with the words for another condition than success."""
        ends = [(one, "when {} has ended") for one in task.after_any]
        failed = [(one, "if {} fails") for one in task.after_failed]
        batch = [(task.after_batch, "after the batch {}")] if task.after_batch else []
        return [*((one, "") for one in task.dependencies), *ends, *failed, *batch]
