"""What a gate may look at. Law: values only; the asker has gathered them.

`more` is the open part: what a gate brings itself, by the gate's name. `Conditions.more` comes from its `asks`, the
`more` of the facts from its `gather`. Where nobody has gathered yet, the name is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spoold.protocol.lifecycle import State
from spoold.protocol.request import Request, halted_by, paused_by
from spoold.protocol.settings import Settings
from spoold.rules.scheduling.resources import Stock, Uses, uses_of


class Parent(StrEnum):
    """What is known of a dependency."""

    UNKNOWN = "unknown"
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"


def parent_in(state: State) -> Parent:
    """What a dependency in that state is to its children; a rejected drop is no task."""
    return _PARENTS.get(state, Parent.OPEN)


_PARENTS = {State.COMPLETED: Parent.COMPLETED, State.FAILED: Parent.FAILED, State.REJECTED: Parent.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a task itself asks for before it may run. Times in seconds since 1970 (wall clock)."""

    needs: tuple[str, ...] = ()
    needs_ended: tuple[str, ...] = ()
    not_before: float | None = None
    deadline: float | None = None
    more: tuple[tuple[str, Hashable], ...] = ()

    def asks(self, gate: str) -> Hashable | None:
        """What the task asks of a gate that has `asks`; None for nothing."""
        return next((asked for name, asked in self.more if name == gate), None)


NO_CONDITIONS = Conditions()


@dataclass(frozen=True, slots=True)
class Known:
    """What every asker has, and gates may gather from. now in seconds since 1970; ends: of pauses that end by
    themselves, as `paused_by` wants them.
    """

    now: float
    settings: Settings
    requests: tuple[Request, ...]
    ends: Mapping[Request, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What the asker knows of a type. uses: what each task of it uses of the counted resources that are in stock.

    paused: the types that are paused, each with the moment (s since 1970) at which that ends by itself, if it does.
    """

    paused: Mapping[str, float | None] = field(default_factory=dict)
    halted: bool = False
    uses: Uses = field(default_factory=dict)
    stock: Stock = field(default_factory=Stock)
    more: Mapping[str, Any] = field(default_factory=dict)


NO_TYPE = TypeFacts()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the asker knows of a task. now in seconds since 1970; rest_s: how long the retry delay still lasts.

    The rest is a length and not a moment, because the leader counts it on a clock that nobody can set.
    key: the key of its id; kind: its type; ring: the ids of a dependency cycle that it is in.
    type: the facts of its type, where they are known; gates that are asked in every step may rely on them.
    """

    now: float
    parent: Callable[[str], Parent]
    rest_s: float = 0.0
    key: str = ""
    kind: str = ""
    ring: tuple[str, ...] = ()
    type: TypeFacts = NO_TYPE
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """What the words for a person may name: the task, its type and its facts, where its parents are, in words.

    asked: what people said of each request that stands, by verb and target; before: how the attempt before ended.
    """

    id: str
    kind: str
    type: TypeFacts
    parents: Mapping[str, Parent] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], str] = field(default_factory=dict)
    before: str = ""


def facts_of_type(kind: str, known: Known, stock: Stock, more: Mapping[str, Any]) -> TypeFacts:
    """The facts of a type. more: what gates have gathered."""
    paused = paused_by(known.requests, known.ends, known.now)
    return TypeFacts(paused, halted_by(known.requests), uses_of(kind), stock, more)
