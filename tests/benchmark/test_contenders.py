"""Our own contenders with a handful of tasks: they come to an end, and nothing is lost or doubled.

The peers are not installed for tests; what is not there must be said, not left out.
"""

from pathlib import Path

import psutil
import pytest

from tools.benchmark.bench import SCALES, Bench
from tools.benchmark.machine import Place, places
from tools.benchmark.order import Order, Outcome, parse
from tools.benchmark.peers import PINS, Peers


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    peers = Peers(tmp_path / "peers")
    peers.missing = dict.fromkeys(PINS, "not for tests")
    return Bench(SCALES["tiny"], (Place(str(tmp_path), "any"),), peers)


@pytest.mark.parametrize(
    ("contender", "tier", "mode"),
    [
        ("sketch", "queue", "drain"),
        ("sketch", "process", "drain"),
        ("spoold", "queue", "drain"),
        ("spoold", "call", "drain"),
        ("spoold", "call", "live"),
        ("spoold", "process", "drain"),
    ],
)
def test_a_contender_does_all_of_its_tasks(bench: Bench, contender: str, tier: str, mode: str) -> None:
    outcome = bench.run(contender, bench.disk, Order("", tier, mode, tasks=12, bound_s=60))
    assert outcome.missing == ""
    assert (outcome.done, outcome.lost, outcome.doubled) == (12, 0, 0)
    assert outcome.rate > 0


def test_calls_in_chunks_are_counted_one_by_one(bench: Bench) -> None:
    outcome = bench.run("executor", bench.disk, Order("", "call", tasks=35, bound_s=60, chunk=10))
    assert outcome.missing == ""
    assert (outcome.done, outcome.lost, outcome.doubled) == (35, 0, 0)


def test_a_peer_that_is_not_there_is_told_of(bench: Bench) -> None:
    assert bench.run("huey", bench.disk, Order("")).missing == "not for tests"


def test_a_contender_that_fails_says_why(bench: Bench) -> None:
    assert "No module named" in bench.run("no_such_contender", bench.disk, Order("")).missing


def test_an_outcome_is_the_last_line_that_was_printed() -> None:
    assert parse('noise\n{"rate": 2.5, "lost": 1}\n') == Outcome(rate=2.5, lost=1)
    with pytest.raises(ValueError, match="printed nothing"):
        parse("\n")


def test_a_chosen_folder_is_the_only_place(tmp_path: Path) -> None:
    (place,) = places(str(tmp_path))
    assert place.parent == str(tmp_path)
    with place.scratch() as folder:
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


def test_a_contender_that_takes_too_long_is_ended_with_all_that_it_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.benchmark.bench.BESIDES_S", 4.0)
    outcome = bench.run("spoold", bench.disk, Order("", nap_s=60.0, tasks=2, bound_s=0.0, mode="live"))
    assert "did not come to an end" in outcome.missing
    left = [process for process in psutil.process_iter(["cmdline"]) if str(bench.disk.parent) in str(process.info)]
    assert not left
