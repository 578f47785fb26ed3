"""tools/simulate: one seed, many seeds, every schedule of small worlds, or the laws broken on purpose.

Law: the exit status is 1 when a law of the product was broken (or, of the mutants, when a breach was not seen), and
then the command that shows it again is printed. 2: the arguments make no sense.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from importlib import import_module

from rich.console import Console

from tests.sim.trace import tell
from tests.sim.worlds import WORLDS, world
from tools.simulation.report import failures, story, summary
from tools.simulation.swarm import swarm

# Modes with arguments of their own.
ELSEWHERE = ("--exhaustive", "--mutants")
# Fresh seeds come from here, so that none of them is one of a fixed set, and all can be typed.
FRESH_FROM, FRESH_TO = 1_000_000, 1_000_000_000


def main() -> int:
    """Simulate and print; returns the exit status."""
    if sys.argv[1:2] and sys.argv[1] in ELSEWHERE:
        return _elsewhere(sys.argv[1].removeprefix("--"), sys.argv[2:])
    options = _parse()
    with world(options.world):
        return _simulate(options)


def _simulate(options: argparse.Namespace) -> int:
    # Lines that are cut are no use in a log, and a log has no width.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    if options.seed is not None:
        return _replay(console, options.seed, options.world)
    begin = options.begin
    if options.fresh:
        begin = FRESH_FROM + secrets.randbelow(FRESH_TO - FRESH_FROM)
        console.print(f"seeds from {begin} on: tools/simulate --seeds {options.seeds} --from {begin} runs them again")
    seeds = range(begin, begin + options.seeds)
    result = swarm(console, seeds, options.time, options.jobs, options.log, options.world)
    summary(console, result)
    failures(console, result, options.world)
    return 1 if result.violations or not result.seeds else 0


def _replay(console: Console, seed: int, world: str) -> int:
    outcome, _ = tell(seed)
    if outcome.broken is None:
        console.print(
            f"seed {seed}: every law holds. {outcome.flavour}, {outcome.simulated_s:.1f} s simulated, "
            f"{len(outcome.struck)} faults, {outcome.moves} moves, {outcome.commits} commits"
        )
        return 0
    story(console, outcome, world)
    return 1


def _elsewhere(module: str, arguments: list[str]) -> int:
    """Each mode reads its own arguments, as a command of its own would."""
    sys.argv = [f"tools/simulate --{module}", *arguments]
    return int(import_module(f"tests.sim.{module}").main())


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/simulate", description="The real steps under a lying file system, in virtual time."
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--seed", type=int, metavar="N", help="one seed; a failure is made small and told")
    mode.add_argument("--seeds", type=int, metavar="N", help="so many seeds")
    mode.add_argument("--exhaustive", action="store_true", help="every crash point, every schedule of small worlds")
    mode.add_argument("--mutants", action="store_true", help="break the laws one at a time; each must be seen")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--from", dest="begin", type=int, default=0, metavar="S", help="the first seed (default: 0)")
    where.add_argument("--fresh", action="store_true", help="begin at a random seed, which is printed")
    parser.add_argument(
        "--world",
        choices=WORLDS,
        default="fit",
        help="how the spool claims, whether two may win one rename, whether a server forgets",
    )
    parser.add_argument("--time", type=float, metavar="S", help="begin no seed after that many real seconds")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="J", help="processes (default: CPUs)"
    )
    parser.add_argument("--log", metavar="FILE", help="append one JSON line for each seed")
    options = parser.parse_args()
    if options.jobs < 1 or (options.seeds is not None and options.seeds < 1):
        parser.error("--seeds and --jobs count from 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
