"""The listings that a leader asks for, and their changes to its view.

Law: says what was seen, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.master.place import Place


@dataclass(slots=True)
class Changes:
    """Result of a refresh: keys that came to a new place, those of them that ended, keys that are nowhere.

    revived: keys that had ended, and are back at their place before that. undone: claims that are back in ready/
    under the very same name, which no move does, and tasks whose success is gone while they are still at their place
    before it.
    """

    came: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    undone: int = 0
    any: bool = False


@dataclass(slots=True)
class Found:
    """Findings that the caller does not have yet: of a refresh that failed halfway, or that did not list the ends.

    gone: tokens that have left their place, and were not seen at another.
    """

    changes: Changes = field(default_factory=Changes)
    gone: dict[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which directories a refresh lists. `ended` is separate: those listings grow with the recently ended tasks, and
    a token that has left its place may be looked for there a little later.
    """

    pending: bool = True
    ready: bool = True
    ended: bool = True
    requests: bool = True
    beats: bool = True
    everything: bool = True


EVERYTHING = Wanted()
