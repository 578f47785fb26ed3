"""Every crash point of a story: each process ends once at every one of its calls, in each of the ways a call can end.

A crash before a call that changes nothing leaves the very tree that a crash before the next call of that step leaves,
and what the process knew is gone either way; so of the calls that only look, the first of each step stands for those
before the next change. Nothing else is left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.sim.conduct import Broken
from tests.sim.stories import Play, Story
from tests.sim.watched import CHANGES
from tests.support.faults import Crashed

# How many rounds later the network carries out the call of a process that is gone: at once, when it has been noticed
# and cleared away, and when all is over.
LATE = (1, 9, None)
HOW = ("before", "after", *(f"late {rounds or 'end'}" for rounds in LATE))


@dataclass(frozen=True, slots=True)
class Point:
    """Where a process ends: whose call, which one of it (from 1), how, and where it is started again."""

    who: str
    number: int
    how: str
    elsewhere: bool = False

    def __str__(self) -> str:
        return f"{self.who}:{self.number}:{self.how.replace(' ', '-')}:{'elsewhere' if self.elsewhere else 'there'}"


def parse_point(text: str) -> Point:
    """A point as it was printed. Errors: ValueError."""
    who, number, how, where = text.split(":")
    if how.replace("-", " ") not in HOW or where not in ("there", "elsewhere"):
        raise ValueError(f"no such crash: {text}")
    return Point(who, int(number), how.replace("-", " "), where == "elsewhere")


class Blow:
    """The gate at which one process ends. Calls are counted by machine, over all lives of its node."""

    def __init__(self, point: Point | None = None) -> None:
        self.point = point
        self.calls: dict[str, list[tuple[int, str]]] = {}
        self.round: Callable[[], int] = lambda: -1
        self.struck_in: int | None = None
        self._dead: set[str] = set()
        self._late: Callable[[], Any] | None = None

    def __call__(self, who: str, verb: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if who in self._dead:
            raise Crashed(who)
        base = who.partition("-")[0]
        made = self.calls.setdefault(base, [])
        made.append((self.round(), verb))
        if (
            self.point is None
            or self.struck_in is not None
            or (base, len(made)) != (self.point.who, self.point.number)
        ):
            return act()
        self.struck_in = self.round()
        self._dead.add(who)
        if self.point.how == "after":
            with contextlib.suppress(OSError):  # which would have been its reply
                act()
        elif self.point.how != "before":
            self._late = act
        raise Crashed(f"{self.point.how} {verb} {args[:1]}")

    def deliver(self) -> None:
        """The network carries out what it had kept."""
        act, self._late = self._late, None
        if act is not None:
            with contextlib.suppress(OSError):  # it came too late
                act()

    def due(self) -> bool:
        """Whether the network does so now."""
        if self.point is None or self._late is None or self.struck_in is None:
            return False
        rounds = dict(zip(HOW[2:], LATE, strict=True))[self.point.how]
        return rounds is not None and self.round() >= self.struck_in + rounds


def points(story: Story) -> tuple[list[Point], int]:
    """The crash points of a story that differ, and how many there are in all."""
    blow = Blow()
    play = _play(story, blow)
    play.run()
    play.rest()
    in_all = sum(len(made) * len(HOW) * 2 for made in blow.calls.values())
    return [*_distinct(blow.calls)], in_all


def _distinct(calls: dict[str, list[tuple[int, str]]]) -> Iterator[Point]:
    for who, made in calls.items():
        step = None
        for number, (round_, verb) in enumerate(made, 1):
            for elsewhere in (False, True):
                if verb in CHANGES:
                    yield from (Point(who, number, how, elsewhere) for how in HOW)
                elif round_ != step:
                    yield Point(who, number, "before", elsewhere)
            step = round_


def strike(story: Story, point: Point) -> None:
    """Play the story with that crash in it. Errors: Broken, or whatever the product failed with."""
    blow = Blow(point)
    play = _play(story, blow)
    play.elsewhere = point.elsewhere

    def after_round() -> None:
        if blow.due():
            blow.deliver()

    play.run(after_round)
    play.rest()
    if blow.struck_in is None:
        raise Broken(f"{point} was never reached: the story is not the same every time")
    blow.deliver()
    play.rest()


def _play(story: Story, blow: Blow) -> Play:
    play = Play.__new__(Play)
    blow.round = lambda: getattr(play, "round", -1)
    Play.__init__(play, story, blow)
    return play
