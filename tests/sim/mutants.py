"""The laws broken one at a time: a simulator that does not notice has a hole in its checkers or in its faults.

Each mutant replaces a function or method of the real product, and the seeds are run until one finds a law broken.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.sim.mutants_alerts import alerts
from tests.sim.mutants_approvals import approvals
from tests.sim.mutants_breakers import breakers
from tests.sim.mutants_budgets import budgets
from tests.sim.mutants_classes import classes
from tests.sim.mutants_clocks import clocks
from tests.sim.mutants_drops import reused, slow
from tests.sim.mutants_edges import edges
from tests.sim.mutants_fair import fair
from tests.sim.mutants_families import families
from tests.sim.mutants_forgetful import doors_forgotten, ends_forgotten, forgetful, slow_forgetful
from tests.sim.mutants_frozen import frozen
from tests.sim.mutants_holders import holders
from tests.sim.mutants_instead import instead
from tests.sim.mutants_leader import leader
from tests.sim.mutants_lent import lenders
from tests.sim.mutants_limits import limits
from tests.sim.mutants_locks import locks, locks_at_the_end
from tests.sim.mutants_moves import moves
from tests.sim.mutants_poison import poisoned
from tests.sim.mutants_shelves import shelves
from tests.sim.mutants_twins import clones, imaged, resumed
from tests.sim.mutants_unserved import unserved
from tests.sim.mutants_urgent import urgent
from tests.sim.mutation import Mutant
from tests.sim.worlds import simulate_in
from tools.turns import Part, part

MUTANTS: tuple[Mutant, ...] = (
    *moves.all,
    *frozen.all,
    *leader.all,
    *holders.all,
    *locks.all,
    *locks_at_the_end.all,
    *clocks.all,
    *forgetful.all,
    *doors_forgotten.all,
    *ends_forgotten.all,
    *slow_forgetful.all,
    *slow.all,
    *reused.all,
    *edges.all,
    *approvals.all,
    *families.all,
    *budgets.all,
    *limits.all,
    *instead.all,
    *classes.all,
    *alerts.all,
    *breakers.all,
    *lenders.all,
    *poisoned.all,
    *shelves.all,
    *unserved.all,
    *urgent.all,
    *fair.all,
    *clones.all,
    *imaged.all,
    *resumed.all,
)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
BUDGET = 1500
# Of a mutant that breaks nothing but policy, so many seeds are to find nothing.
HARMLESS_BUDGET = 40


@dataclass(frozen=True, slots=True)
class Hunt:
    """What came of hunting one mutant. seeds: how many were run; seed and broken: what caught it, None if nothing."""

    name: str
    law: str
    harmless: bool
    seeds: int
    seed: int | None
    broken: str | None
    real_s: float

    @property
    def well(self) -> bool:
        """Whether it ended as it should: caught, or found harmless."""
        return not self.fell and (self.broken is None) == self.harmless

    @property
    def fell(self) -> bool:
        """Whether the mutant itself does not work any more: it proves nothing."""
        return self.broken is not None and self.broken.startswith(("TypeError", "AttributeError", "NameError"))


def hunt(mutant: Mutant, first: int = 0, budget: int = BUDGET) -> Hunt:
    """Run seeds from `first` on under this mutant, until one breaks a law or the budget is spent."""
    begin = time.perf_counter()
    for seed in range(first, first + budget):
        with mutant.alive():
            broken = simulate_in(mutant.world, seed).broken
        if broken is not None:
            return _hunted(mutant, seed - first + 1, seed, broken, begin)
    return _hunted(mutant, budget, None, None, begin)


def _hunted(mutant: Mutant, seeds: int, seed: int | None, broken: str | None, begin: float) -> Hunt:
    taken_s = time.perf_counter() - begin
    return Hunt(mutant.name, mutant.law, mutant.harmless, seeds, seed, broken, taken_s)


def main(argv: Sequence[str] | None = None) -> int:
    """Hunt them all, those named, or a part of them; 1 if any survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="the mutants to hunt; all of them if none is named")
    parser.add_argument("--budget", type=int, default=BUDGET, help="seeds to run before a mutant has survived")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--part", metavar="I/N", type=part, default=Part(), help="every Nth mutant, from the Ith on")
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cpus, metavar="J", help="processes (default: CPUs)")
    asked = parser.parse_args(argv)
    if unknown := sorted(set(asked.names) - BY_NAME.keys()):
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    mine = asked.part.among([name for name in BY_NAME if not asked.names or name in asked.names])
    console, begin = Console(), time.perf_counter()
    if left_out := sorted(BY_NAME.keys() - set(mine)):
        console.print(f"left out: {', '.join(left_out)}", highlight=False, soft_wrap=True)
    hunts = []
    for found in _hunts(mine, asked.first, asked.budget, asked.jobs):
        hunts.append(found)
        console.print(_line(found), highlight=False, markup=False, soft_wrap=True)
    console.print(_table(hunts, time.perf_counter() - begin))
    return 0 if hunts and all(found.well for found in hunts) else 1


def _hunts(names: Sequence[str], first: int, budget: int, jobs: int) -> Iterator[Hunt]:
    """The hunts of these mutants, as they end."""
    # A fresh interpreter for each process, so that no mutant of one hunt is alive in another.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_hunt_named, name, first, budget) for name in names]):
            yield done.result()


def _hunt_named(name: str, first: int, budget: int) -> Hunt:
    mutant = BY_NAME[name]
    return hunt(mutant, first, min(budget, HARMLESS_BUDGET) if mutant.harmless else budget)


def _line(found: Hunt) -> str:
    caught = f"seed {found.seed}: {found.broken}" if found.broken else "no law broken"
    return f"{found.name}: {found.seeds} seeds, {found.real_s:.1f} s, {caught[:300]}"


def _table(hunts: list[Hunt], taken_s: float) -> Table:
    table = Table("mutant", "law", "seeds", "time", "caught by")
    for found in hunts:
        verdict = ("OUT OF DATE: " if found.fell else "") + (
            found.broken or ("harmless, as it should be" if found.harmless else "SURVIVED")
        )
        table.add_row(found.name, found.law, f"{found.seeds}", f"{found.real_s:.1f} s", verdict[:90])
    survivors = sum(not found.well for found in hunts)
    table.caption = f"{len(hunts)} mutants, {survivors} not as they should be, {taken_s:.0f} s"
    return table


if __name__ == "__main__":
    raise SystemExit(main())
