"""What a gate may look at. Law: values only; whoever asks has gathered them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spoold.protocol.task import Task


class Parent(StrEnum):
    """What is known of a dependency."""

    UNKNOWN = "unknown"
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a task itself asks for before it may run. Times in seconds since 1970 (wall clock)."""

    needs: tuple[str, ...] = ()
    needs_ended: tuple[str, ...] = ()
    not_before: float | None = None
    deadline: float | None = None


NO_CONDITIONS = Conditions()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the asker knows. now in seconds since 1970; rest_s: how long the retry delay still lasts.

    The rest is a length and not a moment, because the leader counts it on a clock that nobody can set.
    """

    now: float
    parent: Callable[[str], Parent]
    rest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What the asker knows of a type: active = tasks of it in ready/ and claimed/.

    doubtful: tasks that count as well, since they may be of the type and active, and nobody knows it.
    """

    paused: frozenset[str] = field(default_factory=frozenset)
    halted: bool = False
    limit: int | None = None
    active: int = 0
    doubtful: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """What the words for a person may name: the task, its type and its facts, where its parents are, in words."""

    id: str
    kind: str
    type: TypeFacts
    parents: Mapping[str, Parent] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


def conditions_of(task: Task) -> Conditions:
    """What a task asks for before it may run."""
    if not task.conditional:
        return NO_CONDITIONS
    return Conditions(
        needs=task.dependencies,
        needs_ended=task.after_any,
        not_before=task.not_before.timestamp() if task.not_before else None,
        deadline=task.deadline.timestamp() if task.deadline else None,
    )
