"""Why `mount` stops where it stops: on a share that is not fit for a spool some law does not hold, and the witness
says which. Where rename is not exclusive there is another way to claim; for the others there is only another share.
"""

from __future__ import annotations

import pytest

from tests.sim import machine, universe
from tests.sim.unfit import Forgetful, StaleListings
from tests.sim.universe import simulate
from tests.sim.worlds import simulate_in

SEEDS = range(10)
FEW = range(5)
# What once broke a law under the lock.
MENDED = {"a former leader made one last move, under the lock, of what the next one had seen": 81}


def laws_broken(seeds: range = SEEDS) -> set[str]:
    return {outcome.law for seed in seeds if (outcome := simulate(seed)).law is not None}


def test_a_rename_that_two_machines_win_makes_two_tokens() -> None:
    laws = (simulate_in("two-winners", seed).law for seed in SEEDS)
    assert "one token" in laws  # and no seed more is played than that takes


@pytest.mark.parametrize("seed", [*FEW, *MENDED.values()])
def test_on_the_very_same_share_a_spool_that_claims_by_lock_breaks_no_law(seed: int) -> None:
    outcome = simulate_in("two-winners-lock", seed)
    assert outcome.broken is None
    assert outcome.commits > 10


@pytest.mark.parametrize("seed", range(10, 20))
def test_where_a_server_forgets_what_it_answered_for_nothing_is_lost_and_nothing_doubled(seed: int) -> None:
    assert simulate_in("forgetful", seed).broken is None


@pytest.mark.parametrize("seed", FEW)
def test_a_lock_does_no_harm_where_rename_is_exclusive(seed: int) -> None:
    """Also changes that come late are among the faults there."""
    outcome = simulate_in("lock", seed)
    assert outcome.broken is None
    assert outcome.commits > 10


def test_a_file_that_is_durable_only_in_words_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "Server", Forgetful)
    assert laws_broken() & {"durable", "result before commit"}


def test_listings_from_memory_break_the_limit_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader does not see what runs already. No task is lost: what a worker let go of by mistake goes back."""
    monkeypatch.setattr(machine, "Mount", StaleListings)
    assert "limits" in laws_broken(range(250, 330, 79))
