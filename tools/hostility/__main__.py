"""tools/hostile: seeds are played in pools of two workers, some at once; what breaks a law is played again in halves.

Law: the exit status is 1 when a law was broken, and then the command that shows it again is printed. 2: the arguments
make no sense.

Touches: files, processes, the clock, the terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.hostility import arena, deeds
from tools.hostility.agents import agent, place
from tools.hostility.agents import arena as agents
from tools.hostility.arena import free

# So many seeds are played in one pool.
IN_ONE_POOL = 60


@dataclass(frozen=True, slots=True)
class Play:
    """What is played. at_once: so many seeds."""

    arena: Callable[[Path, str, str], arena.Arena | agents.Arena]
    plan: Callable[[int, str], deeds.Plan | agent.Plan]
    names: Sequence[str]
    at_once: int
    word: str = ""


TASKS = Play(arena.Arena, deeds.plan, sorted(deeds.DEEDS), 2 * arena.SLOTS)
AGENTS = Play(agents.Arena, agent.plan, sorted(place.BLOCKS), agents.SLOTS, " --agents")


def main() -> int:
    """Play; returns the exit status."""
    options = _parse()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so the pool is closed
    began = time.monotonic()
    seeds = [options.seed] if options.seed is not None else list(range(options.begin, options.begin + options.seeds))
    played, failed = 0, 0
    while seeds and not _is_over(options, began):
        some, seeds = seeds[:IN_ONE_POOL], seeds[IN_ONE_POOL:]
        done, breaches = _pool(some, options, began)
        played += len(done)
        seeds = some[len(done) :] + seeds
        if breaches:
            failed += _tell(done, breaches, options, began)
    if seeds:
        print(f"hostile: left out {len(seeds)} seeds from {seeds[0]} on: the time was over")
    print(f"{played - failed} passed, {failed} failed in {time.monotonic() - began:.0f}s")
    return 1 if failed or not played else 0


def _pool(seeds: list[int], options: argparse.Namespace, began: float) -> tuple[list[int], list[str]]:
    """Play seeds in one pool until a law breaks or the time is over; returns those that were played, and breaches."""
    folder = Path(tempfile.mkdtemp(prefix="spoold-hostile-"))
    try:
        pool = options.play.arena(folder, options.scale, options.python)
    except BaseException:
        _clean(folder)
        raise
    done: list[int] = []
    breaches: list[str] = []
    try:
        while len(done) < len(seeds) and not breaches:
            if done and _is_over(options, began):
                break
            now = seeds[len(done) : len(done) + options.play.at_once]
            breaches = pool.play(now, options.deed)
            done += now
    finally:
        breaches += pool.close()
        if breaches and options.verbose:
            print(pool.report())
        _clean(folder)
    return done, breaches


def _tell(done: list[int], breaches: list[str], options: argparse.Namespace, began: float) -> int:
    """Print the breaches, and the fewest seeds that break a law together; returns how many these are."""
    for breach in breaches:
        print(f"BREACH {breach[:3000]}", flush=True)
    named = [re.findall(r"\(seed (\d+):", breach)[-1:] for breach in breaches]
    if all(named):
        # Each breach says whose it is.
        culprits = sorted({int(seed) for [seed] in named})
        for seed in culprits:
            _name(seed, options)
        return len(culprits)
    culprits = done[-options.play.at_once :] if options.seed is None else done
    while len(culprits) > 1 and not options.once and not _is_over(options, began):
        halves = culprits[: len(culprits) // 2], culprits[len(culprits) // 2 :]
        found = next((half for half in halves if _pool(half, options, began)[1]), None)
        if found is None:
            break
        culprits = found
    for seed in culprits if len(culprits) == 1 else ():
        _name(seed, options)
    if len(culprits) > 1:
        print(f"VIOLATION of some at once: {_again(options)} --seeds {len(culprits)} --from {culprits[0]}")
    return len(culprits)


def _name(seed: int, options: argparse.Namespace) -> None:
    said = options.play.plan(seed, options.deed)
    print(f"VIOLATION {', '.join(said.deeds)}, {said.end}: {_again(options)} --seed {seed}", flush=True)


def _again(options: argparse.Namespace) -> str:
    deed = f" --deed {options.deed}" if options.deed else ""
    return f"tools/hostile{options.play.word} --scale {options.scale}{deed}"


def _is_over(options: argparse.Namespace, began: float) -> bool:
    return bool(options.time) and time.monotonic() - began > options.time


def _clean(folder: Path) -> None:
    """Remove the arena's folder."""
    free(folder)
    # The shell's own remover: trees may be deeper than Python's.
    subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL, check=False)
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/hostile", description="Tasks that do what no task should, beside innocent ones."
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--seed", type=int, metavar="N", help="one seed, alone in a pool")
    mode.add_argument("--seeds", type=int, metavar="N", help="so many seeds")
    mode.add_argument("--list", action="store_true", help="print the names of all deeds")
    parser.add_argument("--from", dest="begin", type=int, default=0, metavar="S", help="the first seed (default: 0)")
    parser.add_argument("--time", type=float, metavar="S", help="begin nothing after that many seconds")
    parser.add_argument("--agents", action="store_true", help="agents that leave what no agent should, not tasks")
    parser.add_argument("--scale", choices=sorted(deeds.SCALES), default="small", help="how much of each kind")
    parser.add_argument("--deed", metavar="NAME", default="", help="each seed does this deed alone")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="play against this one's spoold")
    parser.add_argument("--once", action="store_true", help="do not look for the fewest seeds that break a law")
    parser.add_argument("--verbose", action="store_true", help="print the logs of the nodes, too")
    options = parser.parse_args()
    options.play = AGENTS if options.agents else TASKS
    if options.deed and options.deed not in options.play.names:
        parser.error(f"--deed {options.deed}: there is no such deed; --list names all")
    if options.list:
        print(json.dumps(options.play.names, indent=1))
        sys.exit(0)
    if options.seeds is not None and options.seeds < 1:
        parser.error("--seeds counts from 1")
    os.environ.pop("SPOOL_DIR", None)
    return options


if __name__ == "__main__":
    sys.exit(main())
