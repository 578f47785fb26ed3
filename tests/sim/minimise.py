"""A failing seed without the faults that do not matter: delta debugging over the names of the faults that struck.

Law: the smaller story breaks the same law as the whole one. A fault that is left out moves what comes after it, so
the smaller story may fail in another way, which does not count; the result is small, not the smallest there is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from tests.sim.universe import Outcome, simulate

RUNS = 300

Simulate = Callable[[int, Container[str]], Outcome]


@dataclass(frozen=True, slots=True)
class AllBut:
    """Every name but these: what is left out so that only these faults strike."""

    kept: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return name not in self.kept


@dataclass(frozen=True, slots=True)
class Minimal:
    """The faults that are left, in order; what they come to; and how many runs it took to find that."""

    faults: tuple[str, ...]
    outcome: Outcome
    runs: int


def minimise(whole: Outcome, runs: int = RUNS, simulate: Simulate = simulate) -> Minimal:
    """Leave faults out for as long as the same law breaks, in at most that many runs. `whole` is a broken outcome."""
    search = _Search(whole, runs, simulate)
    search.keep(())
    pieces = 2
    while len(search.best.struck) > 1 and search.left > 0:
        faults = search.best.struck
        pieces = min(pieces, len(faults))
        if _one_piece_less(search, faults, pieces):
            pieces = max(pieces - 1, 2)
        elif pieces == len(faults):
            break
        else:
            pieces *= 2
    return Minimal(search.best.struck, search.best, runs - search.left)


class _Search:
    """The smallest story so far. left: how many more runs there may be."""

    def __init__(self, whole: Outcome, runs: int, simulate: Simulate) -> None:
        self.best = whole
        self.left = runs
        self._whole = whole
        self._simulate = simulate

    def keep(self, faults: Sequence[str]) -> bool:
        """Whether these faults alone still break the law; then they are the best so far."""
        if self.left <= 0:
            return False
        self.left -= 1
        outcome = self._simulate(self._whole.seed, AllBut(frozenset(faults)))
        if outcome.law != self._whole.law or len(outcome.struck) >= len(self.best.struck):
            return False
        self.best = outcome
        return True


def _one_piece_less(search: _Search, faults: Sequence[str], pieces: int) -> bool:
    """Cut the faults into pieces, and leave the first one out that nothing depends on."""
    for number in range(pieces):
        begin, end = len(faults) * number // pieces, len(faults) * (number + 1) // pieces
        if search.keep([*faults[:begin], *faults[end:]]):
            return True
    return False
