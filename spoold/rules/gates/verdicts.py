"""The answers of a gate.

Law: a Wait may become a Pass later. A Refuse is final: the task fails with its code.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.result import Code


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
