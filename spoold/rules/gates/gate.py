"""What every gate has.

Law: a gate is a value. `judge` is pure. A gate that answers Wait without a moment names the wakes, one of which comes
when the answer may be another: nobody asks it again at any other time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from spoold.rules.gates.facts import Conditions, Facts, Held, TypeFacts
from spoold.rules.gates.verdicts import Verdict, Wait


class Wake(StrEnum):
    """What makes the leader ask a gate again."""

    TIME = "the moment that it named comes"
    PARENT = "one of the task's parents ends, or comes to life again"
    STEP = "every step of the leader that has room for a task of the type"


@dataclass(frozen=True, slots=True)
class Gate:
    """name: as `explain` and the snapshot call it; document: its words in the section Gates of `spool_layout.md`.

    change: what a person can do about a Wait of this gate; about: the parents that it is about, if any.
    None where it never answers Wait.
    """

    name: str
    document: str
    wakes: frozenset[Wake]
    change: Callable[[Held, Wait, tuple[str, ...]], str] | None


@dataclass(frozen=True, slots=True)
class TaskGate(Gate):
    """A gate that looks at one task. parts: its verdict in pieces, each with the parents that it is about."""

    judge: Callable[[Conditions, Facts], Verdict]
    parts: Callable[[Conditions, Facts], Iterator[tuple[Verdict, tuple[str, ...]]]] | None = None


@dataclass(frozen=True, slots=True)
class TypeGate(Gate):
    """A gate that looks at a whole type."""

    judge: Callable[[str, TypeFacts], Verdict]
