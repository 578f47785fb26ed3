"""The input of a gate.

Law: values only; the asker has gathered them.

`more` is the open part: facts that a gate brings itself, by the gate's name. `Conditions.more` comes from its `asks`,
the `more` of the facts from its `gather`. If they are not gathered yet, the name is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from spoold.protocol.lifecycle import State
from spoold.protocol.request import Request
from spoold.protocol.settings import Settings
from spoold.rules.gates.resources import Resources, Stock, Uses
from spoold.rules.gates.standing_requests import Closed, Requested, closed_by, halted_by, paused_by


class Parent(StrEnum):
    """The known state of a dependency."""

    UNKNOWN = "unknown"
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


def parent_in(state: State) -> Parent:
    """The meaning of a dependency's state to its children; a rejected drop is not a task."""
    return _PARENTS.get(state, Parent.OPEN)


_PARENTS = {
    State.COMPLETED: Parent.COMPLETED,
    State.FAILED: Parent.FAILED,
    State.SKIPPED: Parent.SKIPPED,
    State.REJECTED: Parent.UNKNOWN,
}
# The states of a parent that has ended.
OVER = frozenset({Parent.COMPLETED, Parent.FAILED, Parent.SKIPPED})


@dataclass(frozen=True, slots=True)
class Conditions:
    """The task's own conditions for running. Times in seconds since 1970 (wall clock). child: whether another task
    submitted it.
    """

    needs: tuple[str, ...] = ()
    needs_ended: tuple[str, ...] = ()
    not_before: float | None = None
    deadline: float | None = None
    more: tuple[tuple[str, Hashable], ...] = ()
    needs_failed: tuple[str, ...] = ()
    needs_batch: str = ""
    child: bool = False

    def asks(self, gate: str) -> Hashable | None:
        """The task's demand on a gate that has `asks`; None if there is none."""
        return next((asked for name, asked in self.more if name == gate), None)


NO_CONDITIONS = Conditions()


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that every asker has, and gates may gather from. now in seconds since 1970; ends: of requests that
    end by themselves, in the form for `paused_by`; more: what the asker knows for single gates, by the gate's name.
    """

    now: float
    settings: Settings
    requests: tuple[Request, ...]
    ends: Mapping[Request, float] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """The known facts of the tasks of one lane. uses: how much each of them uses of the counted resources in stock.

    paused: the types that are paused, each with the moment (s since 1970) at which its pause ends by itself, if any.
    closed: the limits that are closed; opens: when (s since 1970) a resource that counts starts has room again.
    unserved: whether workers are awake, and none of them can run a task of the lane; passed_over: the resource that
    a task of the lane was to try again, and no worker took it, so that another lane's task tries; '' for none.
    """

    paused: Mapping[str, float | None] = field(default_factory=dict)
    halted: bool = False
    uses: Uses = field(default_factory=dict)
    stock: Stock = field(default_factory=Stock)
    closed: Mapping[str, Closed] = field(default_factory=dict)
    opens: Mapping[str, float] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    unserved: bool = False
    passed_over: str = ""


NO_TYPE = TypeFacts()


@dataclass(frozen=True, slots=True)
class Facts:
    """The known facts of a task. now in seconds since 1970; rest_s: how long the backoff still lasts.

    The backoff is a length and not a moment, because the leader counts it on a clock that cannot be set.
    key: the key of its id; file: its name in waiting/, which says its urgency and age; kind: its type; ring: the ids
    of a dependency cycle that it is in.
    type: the facts of its type, if known; gates that are asked in every step may rely on them.
    order: of its token; requested: the requests about it that stand.
    """

    now: float
    parent: Callable[[str], Parent]
    rest_s: float = 0.0
    key: str = ""
    kind: str = ""
    ring: tuple[str, ...] = ()
    type: TypeFacts = NO_TYPE
    more: Mapping[str, Any] = field(default_factory=dict)
    order: str = ""
    requested: tuple[Requested, ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """The names for the words to a person: the task, its type and its facts, the places of its parents, in words.

    asked: the words of each request that stands, by verb and target; before: how the last attempt ended;
    above: the keys of the tasks above it whose slots are lent, since they wait for tasks below them. conditions, file
    and lane: of the task; ahead: tasks before it in its lane; in_line: the same, as tasks stand in line for locks.
    """

    id: str
    kind: str
    type: TypeFacts
    parents: Mapping[str, Parent] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], str] = field(default_factory=dict)
    before: str = ""
    above: tuple[str, ...] = ()
    conditions: Conditions = NO_CONDITIONS
    file: str = ""
    lane: str = ""
    ahead: int = 0
    in_line: int = 0


class LaneFacts:
    """The facts of every lane, at one moment and over one stock; those of all requests are worked out once.

    more: the facts that gates have gathered; opens: as in `TypeFacts`; unserved: whether a lane is; passed_over: what
    it is passed over for.
    """

    def __init__(
        self,
        known: Known,
        resources: Resources,
        stock: Stock,
        more: Mapping[str, Any],
        opens: Mapping[str, float],
        unserved: Callable[[str], bool] = lambda lane: False,
        passed_over: Callable[[str], str] = lambda lane: "",
    ) -> None:
        self._resources, self._unserved, self._passed_over = resources, unserved, passed_over
        self._facts = TypeFacts(
            paused_by(known.requests, known.ends, known.now),
            halted_by(known.requests),
            stock=stock,
            closed=closed_by(known.requests, known.ends, known.now),
            opens=opens,
            more=more,
        )

    def of(self, lane: str) -> TypeFacts:
        """The facts of the tasks of a lane."""
        return replace(
            self._facts,
            uses=self._resources.uses(lane),
            unserved=self._unserved(lane),
            passed_over=self._passed_over(lane),
        )
