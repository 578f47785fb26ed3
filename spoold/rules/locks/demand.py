"""What one task locks, and whether two demands conflict.

Law: two demands conflict if a pattern that one of them writes may overlap with any pattern of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spoold.protocol.patterns import BELOW


@dataclass(frozen=True, slots=True)
class Demand:
    """The patterns that a task writes, and those that it only reads. child: whether it is one below another task."""

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    child: bool = False

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def clash(self, other: Demand) -> tuple[str, str] | None:
        """A pattern of each that overlap, one of them written; None if both may run together."""
        for mine in self.write:
            for theirs in (*other.write, *other.read):
                if overlap(mine, theirs):
                    return mine, theirs
        for mine in self.read:
            for theirs in other.write:
                if overlap(mine, theirs):
                    return mine, theirs
        return None

    def told(self) -> str:
        """In words: `write src/api/**, read docs/**`."""
        kinds = (("write", self.write), ("read", self.read))
        return ", ".join(f"{kind} {pattern}" for kind, patterns in kinds for pattern in patterns)


NO_LOCKS = Demand()


# Can two patterns cover the same thing?


# Two patterns with so many stars that this many steps do not decide count as overlapping.
STEPS_MAX = 20_000
_WILD = re.compile(r"[*?\[]")
_SET = re.compile(r"\[.*\]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A pattern as its segments; literal: what every name that it covers begins with; plain: it covers one name."""

    segments: tuple[str, ...]
    literal: str
    plain: bool


@lru_cache(maxsize=65_536)
def parsed(pattern: str) -> Parsed:
    """The segments of a pattern, without sets in brackets."""
    segments: list[str] = []
    for part in pattern.split("/"):
        segment = _SET.sub("*", part)
        if "[" in segment:  # a set that is not closed here: it may go on beyond the segment
            segments += [segment.partition("[")[0] + "*", BELOW]
            break
        if BELOW in segment and segment != BELOW:
            segments += [segment.partition(BELOW)[0] + "*", BELOW]
            break
        segments.append(segment)
    text = "/".join(segments)
    wild = _WILD.search(text)
    literal = text if wild is None else text[: wild.start()].removesuffix("/")
    return Parsed(tuple(segments), literal, wild is None)


def overlap(one: str, other: str) -> bool:
    """Whether something may be covered by both patterns."""
    if one == other:
        return True
    left, right = parsed(one), parsed(other)
    if left.plain and right.plain:
        return False
    length = min(len(left.literal), len(right.literal))
    if left.literal[:length] != right.literal[:length]:
        return False
    steps = [STEPS_MAX]
    return _meet(left.segments, right.segments, BELOW, lambda a, b: _touch(a, b, steps))


def _touch(one: str, other: str, steps: list[int]) -> bool:
    """Whether two segments can be the same name. steps: how many are left; without any they count as the same."""
    return _meet(one, other, "*", lambda a, b: a == b or "?" in (a, b), steps)


def _meet(
    one: Sequence[str],
    other: Sequence[str],
    any_number: str,
    same: Callable[[str, str], bool],
    steps: list[int] | None = None,
) -> bool:
    """Whether two rows can be the same: paths of segments, or segments of characters.

    any_number: stands for any number of members, none included; same: whether two others can be the same. Looks at
    each pair of positions at most once; steps: how many of these are left, and without any the rows meet.
    """
    ends, seen, ahead = (len(one), len(other)), {(0, 0)}, [(0, 0)]
    while ahead:
        left, right = here = ahead.pop()
        if steps is not None:
            steps[0] -= 1
        if here == ends or (steps is not None and steps[0] <= 0):
            return True
        a, b = (row[at] if at < len(row) else None for row, at in ((one, left), (other, right)))
        after: list[tuple[int, int]] = []
        if a == any_number:
            after += [(left + 1, right), *([(left, right + 1)] if b is not None else ())]
        if b == any_number:
            after += [(left, right + 1), *([(left + 1, right)] if a is not None else ())]
        if not after and a is not None and b is not None and same(a, b):
            after = [(left + 1, right + 1)]
        for place in after:
            if place not in seen:
                seen.add(place)
                ahead.append(place)
    return False
