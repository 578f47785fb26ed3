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


def laws_broken() -> set[str]:
    return {outcome.law for seed in SEEDS if (outcome := simulate(seed)).law is not None}


def test_a_rename_that_two_machines_win_makes_two_tokens() -> None:
    laws = (simulate_in("two-winners", seed).law for seed in SEEDS)
    assert "one token" in laws  # and no seed more is played than that takes


@pytest.mark.parametrize("seed", [*FEW, *MENDED.values()])
def test_on_the_very_same_share_a_spool_that_claims_by_lock_breaks_no_law(seed: int) -> None:
    outcome = simulate_in("two-winners-lock", seed)
    assert outcome.broken is None
    assert outcome.commits > 10


@pytest.mark.parametrize("seed", FEW)
def test_a_lock_does_no_harm_where_rename_is_exclusive(seed: int) -> None:
    """Also changes that come late are among the faults there."""
    outcome = simulate_in("lock", seed)
    assert outcome.broken is None
    assert outcome.commits > 10


def test_a_file_that_is_durable_only_in_words_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "Server", Forgetful)
    assert laws_broken() & {"durable", "result before commit"}


def test_listings_from_memory_let_an_attempt_run_twice_or_a_name_be_used_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "Mount", StaleListings)
    assert laws_broken() & {"one attempt ran twice", "written once"}
