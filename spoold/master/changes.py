"""What a leader asks to be listed, and what the listings have changed in its view.

Law: says what was seen, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Changes:
    """What a refresh found: keys that came to a new place, those of them that ended, keys that are nowhere.

    revived: those that had ended, and stand where they stood before that; undone: claims that stand in ready/ again
    under the very same name, which no move does, and tasks whose success is gone while they still stand where they
    were before it.
    """

    came: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    undone: int = 0
    any: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which directories a refresh lists. Whether what lies at the end is listed, too, is asked for in any case: that
    grows with what has ended lately, and a token that has left its place may be looked for there a little later.
    """

    pending: bool = True
    ready: bool = True
    ended: bool = True
    requests: bool = True
    beats: bool = True
    everything: bool = True


EVERYTHING = Wanted()
