"""Who leads: the action on the one token in master/, as it was just seen.

Law: compare-and-swap by name: a renewal and a takeover both rename the very name that was seen, so only one of them
wins. Only a takeover raises the epoch. Of several tokens the highest counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spoold.protocol.amount import some
from spoold.protocol.names import NOBODY, LeaseName

# The warning for a spool without a token: no master that is started can fix it.
MISSING = "master/ has no token, so no master can lead"
MISSING_MEND = "stop all nodes and run `spool fsck --repair`"
NAMED = 3


def takes_over(standbys: Sequence[str], lease_s: float) -> str:
    """Who leads next once a leader is gone, and when: the part of a sentence."""
    stand, lead = ("stands", "leads") if len(standbys) == 1 else ("stand", "one of them leads")
    return f"{some(list(standbys), NAMED)} {stand} by, and {lead} within about {lease_s:g} s"


@dataclass(frozen=True, slots=True)
class Swap:
    """Rename the token that was seen to this name."""

    to: LeaseName


@dataclass(frozen=True, slots=True)
class Keep:
    """The token is mine and fresh enough."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Another master leads: stand by."""


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no token: the spool is broken, and `spool fsck --repair` makes a new one."""


Decision = Swap | Keep | Stand | Missing


def decide(tokens: list[LeaseName], me: str, *, silent_s: float, lease_s: float, renew: bool, gone: bool) -> Decision:
    """Decide how `me` acts on the tokens seen.

    silent_s: how long (s) the highest token has stood still under trusted looks; renew: my renewal is due;
    gone: the holder's process is known to be dead (it ran on this host).
    """
    if not tokens:
        return Missing()
    token = max(tokens)
    if token.holder == me:
        return Swap(LeaseName(token.epoch, token.beat + 1, me)) if renew else Keep()
    if token.holder == NOBODY or gone or silent_s >= lease_s:
        return Swap(LeaseName(token.epoch + 1, 0, me))
    return Stand()


def resigned(token: LeaseName) -> LeaseName:
    """The name that a leader gives the token when it resigns."""
    return LeaseName(token.epoch, token.beat + 1, NOBODY)
