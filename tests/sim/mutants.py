"""The laws broken one at a time: a simulator that does not notice has a hole in its checkers or in its faults.

Each mutant replaces a function or method of the real product, and the seeds are run until one finds a law broken.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.sim.mutants_forgetful import forgetful
from tests.sim.mutants_leader import leader
from tests.sim.mutants_locks import locks
from tests.sim.mutants_moves import moves
from tests.sim.mutation import Mutant
from tests.sim.worlds import simulate_in

MUTANTS: tuple[Mutant, ...] = (*moves.all, *leader.all, *locks.all, *forgetful.all)
BUDGET = 1500
# Of a mutant that breaks nothing but policy, so many seeds are to find nothing.
HARMLESS_BUDGET = 40


@dataclass(frozen=True, slots=True)
class Hunt:
    """What came of hunting one mutant. seeds: how many were run; seed and broken: what caught it, None if nothing."""

    mutant: Mutant
    seeds: int
    seed: int | None
    broken: str | None
    real_s: float

    @property
    def well(self) -> bool:
        """Whether it ended as it should: caught, or found harmless."""
        return not self.fell and (self.broken is None) == self.mutant.harmless

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
            return Hunt(mutant, seed - first + 1, seed, broken, time.perf_counter() - begin)
    return Hunt(mutant, budget, None, None, time.perf_counter() - begin)


def main(argv: Sequence[str] | None = None) -> int:
    """Hunt them all, or those named; 1 if any survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="the mutants to hunt; all of them if none is named")
    parser.add_argument("--budget", type=int, default=BUDGET, help="seeds to run before a mutant has survived")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args(argv)
    unknown = sorted(set(asked.names) - {mutant.name for mutant in MUTANTS})
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(m.name for m in MUTANTS)}")
    console, hunts = Console(), []
    for mutant in MUTANTS:
        if not asked.names or mutant.name in asked.names:
            budget = min(asked.budget, HARMLESS_BUDGET) if mutant.harmless else asked.budget
            found = hunt(mutant, asked.first, budget)
            hunts.append(found)
            console.print(_line(found), highlight=False, markup=False, soft_wrap=True)
    console.print(_table(hunts))
    return 0 if all(found.well for found in hunts) else 1


def _line(found: Hunt) -> str:
    caught = f"seed {found.seed}: {found.broken}" if found.broken else "no law broken"
    return f"{found.mutant.name}: {found.seeds} seeds, {found.real_s:.1f} s, {caught[:300]}"


def _table(hunts: list[Hunt]) -> Table:
    table = Table("mutant", "law", "seeds", "time", "caught by")
    for found in hunts:
        verdict = ("OUT OF DATE: " if found.fell else "") + (
            found.broken or ("harmless, as it should be" if found.mutant.harmless else "SURVIVED")
        )
        table.add_row(found.mutant.name, found.mutant.law, f"{found.seeds}", f"{found.real_s:.1f} s", verdict[:90])
    survivors = sum(not found.well for found in hunts)
    table.caption = f"{len(hunts)} mutants, {survivors} not as they should be, {sum(h.real_s for h in hunts):.0f} s"
    return table


if __name__ == "__main__":
    raise SystemExit(main())
