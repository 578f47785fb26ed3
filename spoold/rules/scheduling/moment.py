"""One moment of a leader's step.

Law: a value; the rules are given one, and read no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

# A wall clock can be set under a timer; looking again at least this often (s) bounds the delay.
LOOK_AGAIN_S = 300.0
# The rest of a wait can be too short to show on a wall clock held in a float: a timer is never due at once again.
LOOK_AGAIN_MIN_S = 0.001


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks of the leader (s)."""

    monotonic: float
    wall: float


def in_s(moment: float, now: Now) -> float:
    """Seconds until the look at a moment (s since 1970)."""
    return min(max(moment - now.wall, LOOK_AGAIN_MIN_S), LOOK_AGAIN_S)
