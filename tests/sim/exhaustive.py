"""All of it: every crash point of every small story, and all schedules of every opening up to some preemptions.

`main` prints progress, what was covered, what was left out and why that is sound, and how to replay a violation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.sim.conduct import Broken
from tests.sim.crashes import Point, parse_point, points, strike
from tests.sim.openings import OPENINGS, Opening, begin, finish
from tests.sim.schedules import Explorer, Found, Switches, replay
from tests.sim.stories import STORIES, Story

SOUND = """\
Crashes: of calls that change nothing only the first of each step is struck, since a crash before any of them leaves
the tree that a crash before the next change leaves. Schedules: left out are beginnings that lead to a tree and to
answers that were seen before, and preemptions before a call that commutes with all that is done until it is made.
See tests/sim/crashes.py and tests/sim/schedules.py."""
QUICK_EVERY = 100
TELL_EVERY_S = 5.0


class _Progress:
    """One line that says how far it is, on a terminal; a line now and then elsewhere."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def tell(self, text: str) -> None:
        if time.monotonic() - self._told >= TELL_EVERY_S:
            self._told = time.monotonic()
            print(f"  … {text}", file=sys.stderr, flush=True)


def all_crashes(stories: Sequence[Story], every: int, violations: list[str]) -> None:
    """Strike every point (or every so-many-th) of every story, and print the table."""
    print(f"{'story':24} {'crash points':>12} {'that differ':>12} {'runs':>7} {'violations':>10} {'s':>7}")
    for story in stories:
        began, progress, broken = time.monotonic(), _Progress(), 0
        differing, in_all = points(story)
        chosen = differing[::every]
        for number, point in enumerate(chosen):
            said = _strike(story, point)
            if said is not None:
                broken += 1
                violations.append(f"--replay 'crash/{story.name}/{point}'\n    {said}")
            progress.tell(f"{story.name}: {number} of {len(chosen)}")
        spent = time.monotonic() - began
        print(
            f"{story.name:24} {in_all:12,} {len(differing):12,} {len(chosen):7,} {broken:10} {spent:7.1f}", flush=True
        )


def _strike(story: Story, point: Point) -> str | None:
    try:
        strike(story, point)
    except Broken as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  whatever the product does wrong is a finding with a place
        return f"{type(error).__name__}: {error}"
    return None


def all_schedules(openings: Sequence[Opening], preemptions: int, violations: list[str]) -> None:
    """Explore every opening, and print the table."""
    print(
        f"{'opening':34} {'preemptions':>11} {'schedules':>12} {'played':>8} {'cut: seen':>9} "
        f"{'cut: commute':>12} {'states':>9} {'violations':>10} {'s':>7}"
    )
    for opening in openings:
        began, progress = time.monotonic(), _Progress()
        bound = max(preemptions - opening.fewer, 0)

        def tell(found: Found, progress: _Progress = progress, name: str = opening.name) -> None:
            progress.tell(f"{name}: {found.played} played, {found.states} states")

        explorer = Explorer(
            lambda opening=opening: begin(opening),  # type: ignore[misc]
            lambda play, opening=opening: finish(play, opening.ends),  # type: ignore[misc]
            bound,
            tell,
        )
        found = explorer.run()
        for switches, said in found.violations:
            violations.append(f"--replay 'schedule/{opening.name}/{_spell(switches)}'\n    {said}")
        spent = time.monotonic() - began
        print(
            f"{opening.name:34} {bound:11} {found.in_all:12,} {found.played:8,} {found.same:9,} {found.commute:12,} "
            f"{found.states:9,} {len(found.violations):10} {spent:7.1f}",
            flush=True,
        )


def _spell(switches: Switches) -> str:
    return ",".join(f"{index}:{name}" for index, name in switches)


def play_again(what: str) -> None:
    """Play one crash or schedule as it was printed. Errors: Broken, AssertionError; ValueError: unknown name."""
    kind, name, how = what.split("/", 2)
    if kind == "crash":
        story = next((story for story in STORIES if story.name == name), None)
        if story is None:
            raise ValueError(f"no such story: {name}")
        strike(story, parse_point(how))
        return
    opening = next((opening for opening in OPENINGS if opening.name == name), None)
    if kind != "schedule" or opening is None:
        raise ValueError(f"no such opening: {name}")
    parts = (part.partition(":") for part in how.split(","))
    switches = tuple((int(index), who) for index, _, who in parts)
    for number, call in enumerate(replay(lambda: begin(opening), lambda play: finish(play, opening.ends), switches)):
        print(f"{number:4} {'→' if number in dict(switches) else ' '} {call}")


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns 1 on a violation."""
    parser = argparse.ArgumentParser(prog="exhaustive", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some crash points, and schedules with one preemption")
    parser.add_argument("--preemptions", type=int, default=3, help="how often processes may lose their turn")
    parser.add_argument("--only", default="", help="only stories and openings whose name contains this")
    parser.add_argument("--replay", metavar="WHAT", help="play one crash or schedule, as it was printed")
    given = parser.parse_args(argv)
    if given.replay:
        try:
            play_again(given.replay)
        except (Broken, AssertionError) as error:
            print(f"violation: {error}")
            return 1
        print("no violation")
        return 0
    began, violations = time.monotonic(), list[str]()
    all_crashes([s for s in STORIES if given.only in s.name], QUICK_EVERY if given.quick else 1, violations)
    openings = [o for o in OPENINGS if given.only in o.name]
    all_schedules(openings[1:2] if given.quick else openings, 1 if given.quick else given.preemptions, violations)
    print(f"{SOUND}\n{len(violations)} violations in {time.monotonic() - began:.0f} s")
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
