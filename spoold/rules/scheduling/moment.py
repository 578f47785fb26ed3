"""One moment of a leader's step.

Law: a value; the rules are given one, and read no clock.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks of the leader (s)."""

    monotonic: float
    wall: float
