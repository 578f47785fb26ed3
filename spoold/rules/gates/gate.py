"""The parts of every gate, and its answers: Pass, Wait, Refuse.

Law: a gate is a value, and its functions are pure. The wakes of a gate say when the leader asks it again, and the
leader asks it at no other time. A gate that can answer Wait has at least one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions, Facts, Held, Known, TypeFacts

# The answers of a gate.
# Law: a Wait may become a Pass later. A Refuse is final: the task fails with its code.


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing stands in the way."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now. gate: the gate's name; until: a moment on the asker's wall clock (s since 1970), if known.

    behind: the key of the one that keeps it back: the gate need not be asked again before that one is gone.
    """

    gate: str
    reason: str
    until: float | None = None
    behind: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never: the task fails with this code."""

    gate: str
    code: Code
    reason: str


Verdict = Pass | Wait | Refuse
PASS = Pass()


class Wake(StrEnum):
    """The events that make the leader ask a gate again."""

    TIME = "the moment that it named comes"
    PARENT = "one of the task's parents ends, or comes to life again"
    REQUEST = "a request about the task comes, or is gone"
    STEP = "every step of the leader that has room for the task"


class Tasks(Enum):
    """The tasks that a gate looks at. Most of a huge backlog ask for nothing and do not rest: they cost nothing."""

    ASKING = "those that ask for something: whose `conditional` is true"
    RESTING = "those, and those that rest between two attempts"
    NAMED = "those that ask for something, and those about which a request stands"
    DRAWING = "those that ask, and all tasks of the types that `kinds` names"
    ALL = "every task"


@dataclass(frozen=True, slots=True)
class Gate:
    """name: as `explain` and the snapshot call it; document: its words in `docs/spec/gates.md`.

    change: the change that a person can make about a Wait of this gate; about: the parents concerned, if any. None if
    it never answers Wait. detail: more facts for a person, '' for none.
    gather: the facts that the gate brings to the `more` of all facts, once a step.
    holds_ready: it also holds tasks in ready/. The leader takes the tasks of a closed type gate back from
    there; of the task gates it only knows the deadline and the hold.
    """

    name: str
    document: str
    wakes: frozenset[Wake]
    change: Callable[[Held, Wait, tuple[str, ...]], str] | None
    detail: Callable[[Held, Wait], str] | None = field(default=None, kw_only=True)
    gather: Callable[[Known], Any] | None = field(default=None, kw_only=True)
    holds_ready: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class TaskGate(Gate):
    """A gate that looks at one task. parts: its verdict in pieces, each with the parents concerned.

    asks: the demand of a task with conditions on this gate, None for none; it comes into `Conditions.more`.
    parents: the tasks whose end wakes it. moment: when (s since 1970) its answer may change though it passes now.
    group: tasks with the same key get the same answer at the same moment, so that a gate with Wake.STEP is asked once
    for all of them; None: the gate does not look at this task. The key is taken when the task comes into the backlog.
    Without `group`, tasks of one type with the same conditions are a group. If the gate answers Wait with `behind`,
    the queue of the group is set aside until that one is gone, and its head stands in line (see `lock_holders`).
    kinds: the types all of whose tasks it looks at, by what it gathered. book: counts in what it gathered for this
    step that a task goes to ready/, so that the next one is asked about finds it counted. unbook: undoes that, for a
    ready task that makes way. holds: whether a ready task, by its own conditions and facts, has what this one wants.
    """

    judge: Callable[[Conditions, Facts], Verdict]
    parts: Callable[[Conditions, Facts], Iterator[tuple[Verdict, tuple[str, ...]]]] | None = None
    tasks: Tasks = field(default=Tasks.ASKING, kw_only=True)
    asks: Callable[[Task], Hashable | None] | None = field(default=None, kw_only=True)
    parents: Callable[[Conditions], tuple[str, ...]] | None = field(default=None, kw_only=True)
    moment: Callable[[Conditions], float | None] | None = field(default=None, kw_only=True)
    group: Callable[[Conditions, Facts], Hashable | None] | None = field(default=None, kw_only=True)
    kinds: Callable[[Any], frozenset[str]] | None = field(default=None, kw_only=True)
    book: Callable[[Conditions, Facts], None] | None = field(default=None, kw_only=True)
    unbook: Callable[[Conditions, Facts], None] | None = field(default=None, kw_only=True)
    holds: Callable[[Conditions, Facts, Conditions, Facts], bool] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class TypeGate(Gate):
    """A gate that looks at a whole type. Its wakes are Wake.STEP, and Wake.TIME if it names moments.

    judge_ready: its verdict on tasks that are in ready/ already, where these are judged otherwise.
    """

    judge: Callable[[str, TypeFacts], Verdict]
    judge_ready: Callable[[str, TypeFacts], Verdict] | None = field(default=None, kw_only=True)

    def judges(self, kind: str, facts: TypeFacts, *, ready: bool) -> Verdict:
        """Its verdict on a task that waits, or on one that is ready."""
        if not ready:
            return self.judge(kind, facts)
        return (self.judge_ready or self.judge)(kind, facts) if self.holds_ready else PASS
