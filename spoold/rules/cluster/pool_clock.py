"""The right time for `deadline` and `not_before`, when the clocks of several machines disagree; and one moment of a
step, on both clocks of a leader.

Law: the clock that most machines share is right, the file server's among them. If no group of clocks has more
members than the server's own, the server is right. One wrong clock, the leader's above all, decides nothing.

A clock is given by how far (s) it is ahead of the file server's, the one clock that all can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Clocks that differ by less than this count as equal.
EQUAL_S = 2.0
# So many characters of a host name are shown; Linux has no longer ones.
NAME_MAX = 64
_FIX = "set it by NTP (`timedatectl set-ntp true`, or chrony)"


def machine(hostname: str, node: str) -> str:
    """The name of a machine, for people and to tell clocks apart: never empty, and in one line. node: a node on it,
    which is a machine by itself if it names no host: another's clock is not its clock.
    """
    return "".join(filter(str.isprintable, hostname)).strip()[:NAME_MAX] or node


def agreed(ahead: Sequence[float]) -> float:
    """How far the right time is ahead of the file server's. ahead: the clocks of the machines, one for each."""
    clocks = [0.0, *ahead]
    groups = [sorted(clock for clock in clocks if abs(clock - middle) < EQUAL_S) for middle in clocks]
    # Of equal groups the first counts: the server's, and after it the one nearest to the server.
    best = max([groups[0], *sorted(groups[1:], key=_off)], key=len)
    return 0.0 if best is groups[0] else best[len(best) // 2]


def correction(ahead: float, right: float) -> float:
    """The seconds that a machine has to add to its own clock, 0 if it is right. right: as `agreed`."""
    off = right - ahead
    return off if abs(off) >= EQUAL_S else 0.0


def is_fresh(age_s: float, *, theirs_s: float, mine_s: float, patience_s: float) -> bool:
    """Whether a stamp of another machine is of the last `patience_s`, by the clock of the file server.

    age_s: by the two machines' own clocks; theirs_s, mine_s: how far these are ahead of the server's, 0 if unknown. A
    stamp from the future proves only that the clocks disagree.
    """
    return -EQUAL_S < age_s + theirs_s - mine_s < patience_s


def warnings(ahead: Mapping[str, float]) -> list[str]:
    """Warnings about these machines' clocks: the wrong ones, and the file server's if it is wrong."""
    right = agreed([ahead[host] for host in sorted(ahead)])
    others = "the other machines'" if right or len(ahead) > 1 else "the file server's"
    told = [
        f"the clock of {host} is {_far(clock - right)} {others}; deadlines do not follow it. On {host}, {_FIX}"
        for host, clock in sorted(ahead.items())
        if abs(clock - right) >= EQUAL_S
    ]
    if right:
        told.append(
            f"the file server's clock is {_far(-right)} the other machines'; deadlines do not follow it. "
            f"On the file server, {_FIX}"
        )
    return told


def _far(ahead: float) -> str:
    return f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'}"


def _off(group: Sequence[float]) -> float:
    return abs(group[len(group) // 2])


# One moment of a leader's step.
# Law: a value; the rules are given one, and read no clock.


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
