"""Why a node was silent: by where its time went since its last beat, and not by guess.

Law: the share is blamed only for time that its calls have taken, or in which it refused steps. The largest part of
the time is the cause; of equal parts the share is blamed last. A node that cannot account for a second blames nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.amount import length, precise

# A part of less than this (s) causes no silence; another part of this fraction of the largest is named, too.
LEAST_S, ALSO = 1.0, 0.5


class Cause(StrEnum):
    """What kept a node from beating. The order decides between equal parts."""

    ASLEEP = "asleep"
    STOPPED = "stopped"
    BUSY = "busy"
    HINDERED = "hindered"
    SHARE = "share"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time (s) of a node went since some moment.

    awake_s: the time that passed without suspend; asleep_s: in suspend. stopped_s: not even the thread that keeps
    time ran; it counts in none of the others. stepping_s: in steps, of which waited_s in calls to the share.
    refused_s: from the first step that the share ended by an error, to one that succeeds; hindered_s: the same for an
    error of this machine.
    """

    awake_s: float = 0.0
    asleep_s: float = 0.0
    stopped_s: float = 0.0
    stepping_s: float = 0.0
    waited_s: float = 0.0
    refused_s: float = 0.0
    hindered_s: float = 0.0

    def since(self, before: Spent) -> Spent:
        """The time spent since an earlier sum."""
        return Spent(*(max(0.0, getattr(self, name) - getattr(before, name)) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Blame:
    """The cause of a silence, and a sentence about it, which a semicolon may follow."""

    cause: Cause
    text: str


def judge(spent: Spent, silent_s: float, who: str, part: str = "", error: str = "") -> Blame:
    """The cause of a silence of silent_s. who: "this worker"; part: what the node does in its step, error: what ended
    its last step; '' if unknown.
    """
    parts = _parts(spent)
    named = [cause for cause in sorted(parts, key=lambda each: -parts[each]) if parts[cause] >= LEAST_S]
    if not named:
        return Blame(Cause.UNKNOWN, f"{who} has not beaten for {length(silent_s)}")
    texts = {
        Cause.ASLEEP: f"this machine was suspended for {length(parts[Cause.ASLEEP])}",
        Cause.STOPPED: f"{who} was stopped, or got no processor, for {precise(parts[Cause.STOPPED])}",
        Cause.BUSY: f"{who} was busy{part and f' with {part}'} for {precise(parts[Cause.BUSY])}",
        Cause.HINDERED: f"{who} could not go on for {precise(parts[Cause.HINDERED])}{error and f' ({error})'}",
        Cause.SHARE: _of_share(spent, parts[Cause.SHARE], error),
    }
    most = parts[named[0]]
    return Blame(named[0], ", and ".join(texts[cause] for cause in named if parts[cause] >= ALSO * most))


def _parts(spent: Spent) -> dict[Cause, float]:
    """The time by cause, in the order that decides between equal parts."""
    return {
        Cause.ASLEEP: spent.asleep_s,
        Cause.STOPPED: spent.stopped_s,
        Cause.BUSY: max(0.0, spent.stepping_s - spent.waited_s),
        Cause.HINDERED: spent.hindered_s,
        Cause.SHARE: max(spent.waited_s, spent.refused_s),
    }


def _of_share(spent: Spent, share_s: float, error: str) -> str:
    if spent.refused_s > spent.waited_s:
        return f"the share has refused for {length(share_s)}{error and f' ({error})'}"
    return f"the share has been silent for {length(share_s)}"
