"""What a task comes after, and the gates: `dependencies` that must have completed, `after_any` that must have ended,
`after_failed`, `after_batch`, cycles; and the graph of which task waits for which.

Law: a parent that is not known yet is waited for, since tasks may arrive in any order. Only a failed or a
skipped parent refuses a task, and only as one of its `dependencies`. Behind a skipped one the task is skipped, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from spoold.protocol.amount import some
from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.rules.gates.facts import OVER, Conditions, Facts, Held, Parent
from spoold.rules.gates.gate import PASS, Pass, Refuse, TaskGate, Verdict, Wait, Wake

NAMED = 3
WAKES = frozenset({Wake.PARENT})


def judge_completed(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until every dependency has completed. One that failed fails it, a skipped one skips it."""
    failed = [p for p in conditions.needs if facts.parent(p) is Parent.FAILED]
    if failed:
        return Refuse("dependencies", Code.DEPENDENCY_FAILED, f"dependency {some(failed, NAMED)} failed")
    skipped = [p for p in conditions.needs if facts.parent(p) is Parent.SKIPPED]
    if skipped:
        return Refuse("dependencies", Code.SKIPPED, f"dependency {some(skipped, NAMED)} was skipped")
    return still_open("dependencies", conditions.needs, facts, {Parent.COMPLETED}, "complete")


def judge_ended(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until every `after_any` task has ended, either way."""
    return still_open("after_any", conditions.needs_ended, facts, OVER, "end")


def still_open(gate: str, parents: tuple[str, ...], facts: Facts, done: Set[Parent], verb: str) -> Verdict:
    """Wait for the parents that are in none of these states; those that are not known yet are named first."""
    states = {p: facts.parent(p) for p in parents}
    unknown = [p for p, state in states.items() if state is Parent.UNKNOWN]
    still = [p for p, state in states.items() if state not in done and state is not Parent.UNKNOWN]
    if unknown:
        return Wait(gate, f"it waits for {some(unknown, NAMED)}, which this spool does not know")
    return Wait(gate, f"it waits for {some(still, NAMED)} to {verb}") if still else PASS


def _completed_by_kind(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    for parents in by_kind(conditions.needs, facts):
        yield judge_completed(Conditions(needs=parents), facts), parents


def _ended_by_kind(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    for parents in by_kind(conditions.needs_ended, facts):
        yield judge_ended(Conditions(needs_ended=parents), facts), parents


def by_kind(parents: tuple[str, ...], facts: Facts) -> Iterator[tuple[str, ...]]:
    """The unknown parents, then the open ones: a person has a different fix for each."""
    for kind in (Parent.UNKNOWN, Parent.OPEN):
        yield tuple(p for p in parents if facts.parent(p) is kind)


def change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    """The fix for parents that are all unknown, or all still open."""
    if any(held.parents.get(p) is Parent.OPEN for p in about):
        return some([f"{p} is {held.places.get(p, 'open')} (`spool explain {p}`)" for p in about])
    named = [f"{p} (it was {held.places[p]})" if p in held.places else p for p in about]
    return f"submit {some(named)}, or cancel this task and submit it without"


def _needs(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs


def _needs_ended(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs_ended


COMPLETED = TaskGate(
    "dependencies",
    "all dependencies are completed",
    WAKES,
    change,
    judge_completed,
    _completed_by_kind,
    parents=_needs,
)
ENDED = TaskGate(
    "after_any",
    "all `after_any` tasks have ended",
    WAKES,
    change,
    judge_ended,
    _ended_by_kind,
    parents=_needs_ended,
)


# The tasks of which one must have failed: for compensation and clean-up.
# Law: the task never starts before one of them has failed, and is skipped only when all have ended and none has
# failed. A task that was skipped has ended, and has not failed.


def judge_after_failed(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until one of them has failed; when all have ended without a failure, it is skipped."""
    named = conditions.needs_failed
    if not named or any(facts.parent(p) is Parent.FAILED for p in named):
        return PASS
    waits = still_open("after_failed", named, facts, OVER, "end, and runs if one of them has failed")
    if not isinstance(waits, Pass):
        return waits
    which = (
        f"{some(list(named), NAMED)} did not fail" if len(named) < 2 else f"none of {some(list(named), NAMED)} failed"
    )
    return Refuse("after_failed", Code.SKIPPED, which)


def _failed_by_kind(conditions: Conditions, facts: Facts) -> Iterator[tuple[Verdict, tuple[str, ...]]]:
    if isinstance(judge_after_failed(conditions, facts), Pass):
        return
    for parents in by_kind(conditions.needs_failed, facts):
        if parents:
            yield judge_after_failed(Conditions(needs_failed=parents), facts), parents


def _needs_failed(conditions: Conditions) -> tuple[str, ...]:
    return conditions.needs_failed


AFTER_FAILED = TaskGate(
    "after_failed",
    "one of the `after_failed` tasks has failed",
    WAKES,
    change,
    judge_after_failed,
    _failed_by_kind,
    parents=_needs_failed,
)


# The batch of which every task must have ended.
# A batch is a parent under a name that no task can have, so it wakes the tasks that wait for it as any parent does.
# Who asks knows its state: UNKNOWN while no task of it was seen, OPEN while one has not ended or it is not sure
# that all have, COMPLETED when all have ended, either way.
# Law: a batch that is not known yet is waited for, as a parent is. Neither its failures nor its absence refuse a
# task.


# No id holds a colon.
_BATCH = "batch:"


def parent_of(batch: str) -> str:
    """The name under which a batch is a parent."""
    return f"{_BATCH}{key(batch)}"


def batch_in(parent: str) -> str | None:
    """The batch (its key) that a parent stands for; None for a task."""
    return parent.removeprefix(_BATCH) if parent.startswith(_BATCH) else None


def judge_after_batch(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until all tasks of the batch have ended."""
    batch = conditions.needs_batch
    if not batch:
        return PASS
    state = facts.parent(parent_of(batch))
    if state is Parent.UNKNOWN:
        return Wait("after_batch", f"it waits for batch {batch}, of which no task is known yet")
    return (
        PASS if state is Parent.COMPLETED else Wait("after_batch", f"it waits for all tasks of batch {batch} to end")
    )


def _change_of_batch(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    known = next((parent for parent, state in held.parents.items() if batch_in(parent) and state is Parent.OPEN), "")
    batch = batch_in(known)
    if batch is None:
        return "submit a task of that batch, or cancel this task and submit it without after_batch"
    return f"it runs when they have ended: `spool ls --batch {batch}` shows them"


def _detail_of_batch(held: Held, wait: Wait) -> str:
    """How many of them have not ended, and a few of them."""
    return next((words for parent, words in held.places.items() if batch_in(parent)), "")


def _parent_of_batch(conditions: Conditions) -> tuple[str, ...]:
    return (parent_of(conditions.needs_batch),) if conditions.needs_batch else ()


AFTER_BATCH = TaskGate(
    "after_batch",
    "all tasks of the `after_batch` batch have ended",
    WAKES,
    _change_of_batch,
    judge_after_batch,
    detail=_detail_of_batch,
    parents=_parent_of_batch,
)


# A task that waits for itself, however long the way round.
# Law: every member of a cycle is refused, and not only the task that closed it. The reason names one whole cycle.


def judge_cycle(conditions: Conditions, facts: Facts) -> Verdict:
    """Every member of a cycle is refused, and the reason names one whole cycle."""
    if facts.ring:
        ring = " → ".join([*facts.ring, facts.ring[0]])
        return Refuse("cycle", Code.INVALID_TASK, f"dependency cycle: {ring}; take one dependency out of it")
    return PASS


# Nothing wakes it: a cycle is found when the task that closes it arrives, and all its members are asked then.
CYCLE = TaskGate("cycle", "the task is in no dependency cycle", frozenset(), None, judge_cycle)


# Which tasks wait for which.
# Ids are compared by their key (see `names.key`); callers pass keys.
# Law: an edge child → parent exists from the child's admission, whether or not the parent is known yet, so that
# tasks may arrive in any order. The edge goes when its child no longer waits, and not before.


class Graph:
    """Children by parent and parents by child, both only for tasks that still wait."""

    def __init__(self) -> None:
        self._parents: dict[str, frozenset[str]] = {}
        self._children: dict[str, set[str]] = {}
        self._open: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._parents)

    def __contains__(self, child: str) -> bool:
        return child in self._parents

    def add(self, child: str, parents: Iterable[str]) -> None:
        """The child waits for these parents; all of them count as open until `settle` says otherwise."""
        self._parents[child] = frozenset(parents)
        self._open[child] = set(self._parents[child])
        for parent in self._parents[child]:
            self._children.setdefault(parent, set()).add(child)

    def remove(self, child: str) -> None:
        """The child no longer waits, for whatever reason."""
        self._open.pop(child, None)
        for parent in self._parents.pop(child, frozenset()):
            siblings = self._children[parent]
            siblings.discard(child)
            if not siblings:
                del self._children[parent]

    def children(self, parent: str) -> list[str]:
        """The tasks that wait for the parent, in a settled order."""
        return sorted(self._children.get(parent, ()))

    def settle_all(self, child: str, parents: Iterable[str]) -> None:
        """Note that these of the child's parents need not be waited for."""
        self._open[child].difference_update(parents)

    def has_children(self, parent: str) -> bool:
        """Whether any task waits for the parent."""
        return parent in self._children

    def behind(self, parent: str) -> set[str]:
        """Every task that waits for the parent, however long the way."""
        return self._reach(parent, self._children)

    def settle(self, child: str, parent: str, *, ended: bool) -> bool:
        """Note that one of the child's parents has ended, or is open again; True while any of them is open."""
        (self._open[child].discard if ended else self._open[child].add)(parent)
        return bool(self._open[child])

    def knot(self, start: str) -> list[str]:
        """Every task on some cycle through `start`, in a settled order."""
        return sorted(self._reach(start, self._parents) & self._reach(start, self._children))

    @staticmethod
    def _reach(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
        reached: set[str] = set()
        front = {start}
        while front:
            front = {after for node in front for after in edges.get(node, ())} - reached
            reached |= front
        return reached

    def cycle(self, start: str) -> list[str]:
        """The members of a cycle through `start`, in order of dependency, or [].

        Asked when `start` is added: a new cycle must go through it, and can only do so if a task already waits for
        it; a chain that arrives in order therefore costs nothing here.
        """
        if start not in self._children:
            return []
        came: dict[str, str] = {}
        stack = [start]
        while stack:
            node = stack.pop()
            for parent in sorted(self._parents.get(node, ())):
                if parent == start:
                    return self._path(came, start, node)
                if parent not in came and parent in self._parents:
                    came[parent] = node
                    stack.append(parent)
        return []

    @staticmethod
    def _path(came: dict[str, str], start: str, node: str) -> list[str]:
        path = [node]
        while path[-1] != start:
            path.append(came[path[-1]])
        return path[::-1]
