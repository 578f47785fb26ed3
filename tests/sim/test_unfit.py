"""Why `mount` stops where it stops: on a share that is not fit for a spool some law does not hold, and the witness
says which. Where rename is not exclusive there is a documented refusal; for the others there is only another share.
"""

from __future__ import annotations

import pytest

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from spoold.system.memory import MemoryFileSystem
from tests.sim import machine, universe
from tests.sim.unfit import Forgetful, StaleListings, TwoWinners
from tests.sim.universe import simulate

SEEDS = range(10)


def laws_broken() -> set[str]:
    return {outcome.law for seed in SEEDS if (outcome := simulate(seed)).law is not None}


def test_a_rename_that_two_machines_win_makes_two_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "Server", TwoWinners)
    assert "one token" in laws_broken()


def test_a_file_that_is_durable_only_in_words_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "Server", Forgetful)
    assert laws_broken() & {"durable", "result before commit"}


def test_listings_from_memory_let_an_attempt_run_twice_or_a_name_be_used_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "Mount", StaleListings)
    assert laws_broken() & {"one attempt ran twice", "written once"}


def test_a_spool_for_shares_without_exclusive_rename_is_refused() -> None:
    """The only way out for such a share is a spool that claims by lock, and no node touches that by rename."""
    fs, clock = MemoryFileSystem(ManualClock()), ManualClock()
    initialise(fs, clock, "sim", "/spool")
    marker = codec.load_object(fs.read(layout.MARKER), layout.MARKER)
    fs.unlink(layout.MARKER)
    fs.write(layout.MARKER, codec.dump({**marker, "claim": "lock"}), durable=True)
    with pytest.raises(BadFile, match="knows only 'rename'"):
        open_store(fs, clock, "node", "/spool")
